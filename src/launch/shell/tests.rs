//! Scripts as people write them, and the runs that they start.

use proptest::prelude::*;

use super::*;

fn evaluated(files: &[(&str, &str)]) -> Reading {
    let sources: Vec<Source<'_>> = files.iter().map(|(name, text)| Source { name, text }).collect();
    evaluate(sources[0], &sources[1..])
}

/// Words of the runs of a script, each as one line.
fn runs(files: &[(&str, &str)]) -> Vec<String> {
    let words = |run: &Run| plain(&run.words.join(" "));
    evaluated(files).runs.iter().map(words).collect()
}

fn run(text: &str) -> String {
    let found = runs(&[("run.sh", text)]);
    assert_eq!(found.len(), 1, "{text}: {found:?}");
    found[0].clone()
}

#[test]
fn variables_parameters_and_sums_are_expanded_as_bash_does() {
    for (text, words) in [
        ("N=${N:-4}; A=$((16 / N))\npython t.py --a $A", "python t.py --a 4"),
        (
            "X=a/b.tar.gz\npython t.py ${X##*/} ${X%.*} ${X/a/c} ${#X}",
            "python t.py b.tar.gz a/b.tar c/b.tar.gz 10",
        ),
        (
            "A=(x \"y z\")\nA+=(w)\npython t.py \"${A[@]}\" ${#A[@]}",
            "python t.py x y z w 3",
        ),
        (
            "ARGS=\"\n  --a 1 \\\n  --b 2\n\"\npython t.py $ARGS",
            "python t.py --a 1 --b 2",
        ),
        (
            "f() { python t.py --m $1 \"${@:2}\"; }\nf x --b 1",
            "python t.py --m x --b 1",
        ),
        ("D=$(cd \"$(dirname \"$0\")\"; pwd)\npython $D/t.py", "python ./t.py"),
        (
            "export CUDA_VISIBLE_DEVICES=0,1,2\nN=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node=$N t.py",
            "torchrun --nproc_per_node=3 t.py",
        ),
        (
            "CUDA_VISIBLE_DEVICES=4,5\nN=$(echo $CUDA_VISIBLE_DEVICES | tr ',' '\\n' | wc -l)\npython t.py $N",
            "python t.py 2",
        ),
        (
            "N=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node $N t.py",
            "torchrun --nproc_per_node $(nvidia-smi -L | wc -l) t.py",
        ),
        (
            "case 7b in 13b) M=a;; 7*) M=b;; *) M=c;; esac\npython t.py $M",
            "python t.py b",
        ),
        (
            "if [ -z \"$GPUS\" ]; then GPUS=8; fi\ntorchrun --nproc_per_node $GPUS t.py",
            "torchrun --nproc_per_node 8 t.py",
        ),
        (
            "if [ -z \"$M\" ]; then echo give M; exit 1; fi\npython t.py --m $M",
            "python t.py --m $M",
        ),
        (
            "i=0\nwhile (( i < 3 )); do i=$((i + 1)); done\npython t.py $i",
            "python t.py 3",
        ),
        (
            "IFS=',' read -ra G <<< \"0,1,2\"\npython t.py ${#G[@]}",
            "python t.py 3",
        ),
        (
            "LR=$(python -c 'print(1e-4 * 2)')\npython t.py --lr $LR",
            "python t.py --lr $(python -c 'print(1e-4 * 2)')",
        ),
    ] {
        assert_eq!(run(text), words, "{text}");
    }
}

#[test]
fn scripts_beside_are_started_with_their_arguments_and_environment() {
    let script = "MODEL=x\nwhile [[ $# -gt 0 ]]; do\n  case $1 in\n    -m|--model) MODEL=$2; shift 2 ;;\n    *) exit 1 ;;\n  esac\ndone\n\
                  torchrun --nproc_per_node ${CARDS:-8} t.py --model $MODEL\n";
    let found = runs(&[("start.sh", "CARDS=2 bash tune/a.sh -m y"), ("tune/a.sh", script)]);
    assert_eq!(found, ["torchrun --nproc_per_node 2 t.py --model y"]);
    // Without arguments its own defaults hold.
    assert_eq!(
        runs(&[("a.sh", script)]),
        ["torchrun --nproc_per_node 8 t.py --model x"]
    );
    let options = "while getopts \"m:b\" o; do case $o in m) M=$OPTARG;; b) B=1;; esac; done\npython t.py $M $B\n";
    let found = runs(&[("start.sh", "sh b.sh -b -m z"), ("b.sh", options)]);
    assert_eq!(found, ["python t.py z 1"]);
    let sourced = runs(&[("start.sh", ". conf/env.sh\npython t.py $M"), ("conf/env.sh", "M=q\n")]);
    assert_eq!(sourced, ["python t.py q"]);
    assert_eq!(evaluated(&[("start.sh", "bash tune/c.sh 1")]).absent, ["tune/c.sh"]);
    // A script that starts itself ends.
    assert!(runs(&[("run.sh", "bash run.sh $1")]).is_empty());
}

#[test]
fn programs_that_start_others_are_looked_through() {
    for (text, words) in [
        // An option that holds its value takes no word behind it.
        (
            "nice --adjustment=5 torchrun --nproc_per_node 4 t.py python x",
            "torchrun --nproc_per_node 4 t.py python x",
        ),
        (
            "docker run --rm --gpus '\"device=0,1\"' -e A=1 -v /x:/x me/image:1 bash -c 'cd /x && python t.py --b 1'",
            "python t.py --b 1",
        ),
        ("ray job submit --address x -- python t.py --b 1", "python t.py --b 1"),
        (
            "srun --mpi=none -n 1 singularity exec --nv box.sif torchrun --nproc_per_node 4 t.py",
            "torchrun --nproc_per_node 4 t.py",
        ),
        (
            "timeout 5h nohup bash -c \"python t.py --b 1\" > log 2>&1 &",
            "python t.py --b 1",
        ),
        (
            "#SBATCH --nodes=2\n#SBATCH --gpus-per-node=4\nsrun torchrun --nnodes $SLURM_NNODES --nproc_per_node $SLURM_GPUS_ON_NODE t.py",
            "torchrun --nnodes 2 --nproc_per_node 4 t.py",
        ),
        (
            "cat > job.sh <<EOF\npython t.py --b 1\nEOF\nsbatch job.sh",
            "python t.py --b 1",
        ),
        ("bash <<'EOF'\npython t.py $(echo 1)\nEOF", "python t.py 1"),
        ("eval \"python t.py --b 1\"", "python t.py --b 1"),
        ("mpirun -np 4 python t.py", "python --nproc_per_node 4 t.py"),
    ] {
        assert_eq!(run(text), words, "{text}");
    }
    let hosts = runs(&[
        ("a.sh", "deepspeed --hostfile hosts t.py"),
        ("hosts", "a slots=4\nb slots=4\n"),
    ]);
    assert_eq!(hosts, ["deepspeed --num_nodes 2 --num_gpus 4 --hostfile hosts t.py"]);
}

#[test]
fn both_ways_of_a_condition_that_is_not_known_are_followed() {
    let text = "if [ \"$1\" = big ]; then M=a; else M=b; fi\npython t.py --m $M";
    let reading = evaluated(&[("a.sh", text)]);
    assert_eq!(open_word(&reading.runs[0].words[3]), Some(Open::Unknown));
    assert!(!reading.runs[0].is_conditional);
    let text = "if [ \"$1\" = big ]; then python a.py; else python b.py; fi";
    let reading = evaluated(&[("a.sh", text)]);
    assert_eq!(reading.runs.len(), 2);
    assert!(reading.runs.iter().all(|run| run.is_conditional));
}

#[test]
fn files_that_hold_commands_in_another_form_are_read() {
    for (name, text, words) in [
        (
            "Makefile",
            "GPUS ?= 2\nMODEL := a/b\n\ntrain: data\n\t@torchrun --nproc_per_node $(GPUS) t.py \\\n\t  --m $(MODEL)\n",
            "torchrun --nproc_per_node 2 t.py --m a/b",
        ),
        (
            "notes.md",
            "# How\nRun it:\n```bash\n$ python t.py --b 1\n```\nand wait for 'it\n",
            "python t.py --b 1",
        ),
        (
            "typed.sh",
            "(vl) me@box:~/job$ cd x\n(vl) me@box:~/job$ A=1 python t.py \\\n> --b 1\npython is not read here\n",
            "python t.py --b 1",
        ),
        (
            "typed.txt",
            "[me@box job]# python t.py --b 1\nTraceback:\n",
            "python t.py --b 1",
        ),
        ("typed.txt", "$ torchrun t.py \\\n    --b 1\n", "torchrun t.py --b 1"),
        (
            "run.bat",
            "@echo off\r\nset N=2\r\nrem a note\r\npython t.py ^\r\n  --b %N%\r\n",
            "python t.py --b 2",
        ),
        (
            "run.ps1",
            "$n = 2\n$env:A = \"1\"\npython t.py `\n  --b $n\n",
            "python t.py --b 2",
        ),
    ] {
        assert_eq!(runs(&[(name, text)]), [words], "{name}");
    }
}

#[test]
fn what_has_no_end_is_cut_off() {
    for text in [
        "while true; do x=$x$x; done\npython t.py".to_owned(),
        "f() { f; f; }\nf\npython t.py".to_owned(),
        "x=a\n".to_owned() + &"x=$x$x\n".repeat(60) + "python t.py $x\n",
        "if a; then\n".repeat(5000) + "python t.py\n",
        "$(".repeat(5000),
        "(".repeat(100_000),
        "if $A; then b=1; fi\n".repeat(20_000),
        "for i in {1..1000}; do for j in {1..1000}; do for k in {1..1000}; do :; done; done; done".to_owned(),
        "\"".to_owned() + &"a $(b\n".repeat(50_000),
    ] {
        evaluated(&[("a.sh", &text)]);
    }
}

proptest! {
    /// Any text is followed to an end.
    #[test]
    fn any_text_is_followed(text in "(if|then|fi|for|in|do|done|while|case|esac|;;|python t.py|\\$\\(|\\$\\{a|\\$[a1@#]|a=|\\(|\\)|\\{|\\}|\\[\\[|\\]\\]|[ \\n'\"`#;&|<>\\\\-]|<<E|x|é){0,60}") {
        evaluated(&[("a.sh", &text)]);
    }
}
