//! The way of data to the GPU: workers that prepare batches, a copy, and the step that waits for them.
//!
//! As PyTorch's `DataLoader` does it: each worker prepares whole batches, one stage after the other, up
//! to `prefetch` batches ahead; the training loop takes them in order.

use serde::Serialize;

/// Work on one batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// What is done, such as `decode`.
    pub name: &'static str,
    /// Seconds for one batch, by one worker or by what else does it.
    pub seconds: f64,
    /// Who does it.
    pub by: By,
}

/// Who does a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A worker's process.
    Worker,
    /// The copy engine, beside the step before (pinned memory, `non_blocking=True`).
    Copy,
    /// The training loop or its GPU: nothing else runs meanwhile.
    Loop,
}

/// How batches are made ready.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// In order.
    pub stages: Vec<Stage>,
    /// Processes; 0 prepares batches in the training loop.
    pub workers: u64,
    /// Batches that each worker may be ahead (`prefetch_factor`).
    pub prefetch: u64,
    /// Cores for the workers: more processes than cores share them.
    pub cores: u64,
    /// Seconds of a training step.
    pub step: f64,
}

/// One piece of work of a Gantt chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    /// Its row: workers from 0, then the copy engine, then the training loop.
    pub row: u64,
    /// Which batch.
    pub batch: u64,
    /// What is done; `step` for the training step.
    pub name: &'static str,
    /// Seconds.
    pub begin: f64,
    /// Seconds.
    pub end: f64,
}

/// What a pipeline sustains.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Seconds from one step to the next.
    pub interval: f64,
    /// Share of it in which the GPU waits for data.
    pub idle_share: f64,
    /// The first batches.
    pub bars: Vec<Bar>,
}

/// Batches that are played to reach the steady state, and that are drawn.
const PLAYED: u64 = 512;
const DRAWN: u64 = 12;

impl Pipeline {
    fn seconds(&self, by: By) -> f64 {
        self.stages.iter().filter(|s| s.by == by).map(|s| s.seconds).sum()
    }

    /// Plays batch after batch; the second half of them gives the steady state.
    pub fn flow(&self) -> Flow {
        let lanes = self.workers.max(1);
        let slower = (self.workers as f64 / self.cores.max(1) as f64).max(1.0);
        let ahead = (lanes * self.prefetch.max(1)) as usize;
        let mut free = vec![0.0_f64; lanes as usize];
        let (mut copy, mut gpu) = (0.0_f64, 0.0_f64);
        let mut taken: Vec<f64> = Vec::new();
        let mut ends: Vec<f64> = Vec::new();
        let mut bars = Vec::new();
        for batch in 0..PLAYED {
            let lane = (batch % lanes) as usize;
            let mut draw = |row, name, begin, end| {
                if batch < DRAWN {
                    bars.push(Bar {
                        row,
                        batch,
                        name,
                        begin,
                        end,
                    });
                }
            };
            // a worker begins when it is free and the loop has taken the batch that makes room
            let room = (batch as usize).checked_sub(ahead).map_or(0.0, |i| taken[i]);
            let mut at = free[lane].max(room);
            if self.workers == 0 {
                at = at.max(gpu);
            }
            for stage in self.stages.iter().filter(|s| s.by == By::Worker) {
                let end = at + stage.seconds * slower;
                draw(lane as u64, stage.name, at, end);
                at = end;
            }
            free[lane] = at;
            taken.push(at.max(taken.last().copied().unwrap_or(0.0)));
            let mut ready = at.max(copy);
            for stage in self.stages.iter().filter(|s| s.by == By::Copy) {
                let end = ready + stage.seconds;
                draw(lanes, stage.name, ready, end);
                ready = end;
            }
            copy = ready;
            let mut now = ready.max(gpu);
            for stage in self.stages.iter().filter(|s| s.by == By::Loop) {
                draw(lanes + 1, stage.name, now, now + stage.seconds);
                now += stage.seconds;
            }
            draw(lanes + 1, "step", now, now + self.step);
            gpu = now + self.step;
            // the loop asks for the next batch when it begins this step
            if let Some(last) = taken.last_mut() {
                *last = last.max(now);
            }
            ends.push(gpu);
        }
        // whole rounds of the workers, which may come in bursts
        let last = ends.len() - 1;
        let rounds = (last / 2 / lanes as usize).max(1) * lanes as usize;
        let interval = (ends[last] - ends[last.saturating_sub(rounds)]) / rounds.min(last) as f64;
        Flow {
            interval,
            idle_share: (1.0 - self.step / interval).max(0.0),
            bars,
        }
    }

    /// The fewest workers, up to `most`, that come within 1% of the shortest interval.
    pub fn best_workers(&self, most: u64) -> u64 {
        let interval = |workers| {
            Self {
                workers,
                ..self.clone()
            }
            .flow()
            .interval
        };
        let shortest = (0..=most).map(interval).fold(f64::INFINITY, f64::min);
        (0..=most).find(|&w| interval(w) <= 1.01 * shortest).unwrap_or(most)
    }

    /// The longest part: what limits the throughput, in seconds a batch.
    pub fn limit(&self) -> f64 {
        let lanes = self.workers.min(self.cores).max(1) as f64;
        let work = self.seconds(By::Worker) / lanes;
        work.max(self.seconds(By::Copy)).max(self.seconds(By::Loop) + self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &'static str, ms: f64, by: By) -> Stage {
        Stage {
            name,
            seconds: ms / 1e3,
            by,
        }
    }

    /// Exercise 11.3: read 50, decode 30, resize 40, copy 20 ms, all in the training loop: 140 ms a batch.
    fn course(workers: u64) -> Pipeline {
        Pipeline {
            stages: vec![
                stage("read", 50.0, By::Worker),
                stage("decode", 30.0, By::Worker),
                stage("resize", 40.0, By::Worker),
                stage("copy", 20.0, By::Loop),
            ],
            workers,
            prefetch: 2,
            cores: 16,
            step: 0.0,
        }
    }

    fn close(a: f64, ms: f64) -> bool {
        (a * 1e3 - ms).abs() < 0.01
    }

    #[test]
    fn without_workers_everything_is_in_the_way() {
        assert!(close(course(0).flow().interval, 140.0));
    }

    /// The course's answer: under 40 ms with 4 workers, decoding on the GPU in 15 ms, and a copy beside the
    /// step. Workers then read and resize in 90 ms, four at a time: 22.5 ms a batch, more than the copy's 20.
    #[test]
    fn the_course_s_pipeline_exercise() {
        let better = Pipeline {
            stages: vec![
                stage("read", 50.0, By::Worker),
                stage("resize", 40.0, By::Worker),
                stage("copy", 20.0, By::Copy),
                stage("decode", 15.0, By::Loop),
            ],
            ..course(4)
        };
        let flow = better.flow();
        assert!(close(flow.interval, 22.5), "{}", flow.interval);
        assert!(flow.interval < 0.040);
        assert!(close(better.limit(), 22.5));
        assert!(!flow.bars.is_empty());
    }

    #[test]
    fn a_step_longer_than_the_preparation_hides_it() {
        let pipeline = Pipeline { step: 0.2, ..course(4) };
        let flow = pipeline.flow();
        // the copy is in the loop
        assert!(close(flow.interval, 220.0));
        assert!((flow.idle_share - 20.0 / 220.0).abs() < 1e-6);
    }

    #[test]
    fn more_workers_help_until_the_loop_is_the_limit_and_cores_are_used_up() {
        let interval = |workers| course(workers).flow().interval;
        assert!(interval(2) < interval(1) && interval(4) < interval(2));
        assert!(close(interval(6), 20.0), "{}", interval(6));
        assert_eq!(course(0).best_workers(32), 6);
        let few = Pipeline { cores: 2, ..course(8) };
        assert!(few.flow().interval >= 0.060 - 1e-9);
    }

    #[test]
    fn bars_of_a_row_do_not_overlap() {
        let flow = course(3).flow();
        for row in 0..=4 {
            let of_row: Vec<&Bar> = flow.bars.iter().filter(|bar| bar.row == row).collect();
            assert!(of_row.windows(2).all(|w| w[0].end <= w[1].begin + 1e-12), "row {row}");
        }
    }
}
