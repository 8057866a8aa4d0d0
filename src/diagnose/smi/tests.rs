//! Tests of reading the output of nvidia-smi.

use super::*;
use crate::{Evidence, Piece};

fn smi(piece: Option<Piece>) -> Smi {
    match piece.expect("it is recognised").evidence {
        Evidence::Smi(smi) => smi,
        other => panic!("{other:?}"),
    }
}

fn mib(bytes: Option<Bytes>) -> Option<u64> {
    bytes.map(|bytes| bytes.get() >> 20)
}

const NEW: &str = "\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   41C    P0            275W /  400W |   78123MiB /  81920MiB |     97%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          On  |   00000000:0F:00.0 Off |                    0 |
| N/A   30C    P0             61W /  400W |       4MiB /  81920MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|=========================================================================================|
|    0   N/A  N/A    203841      C   python train.py                             77000MiB |
|    0   N/A  N/A      1873      G   /usr/lib/xorg/Xorg                             12MiB |
+-----------------------------------------------------------------------------------------+
";

const OLD: &str = "\
| NVIDIA-SMI 430.50       Driver Version: 430.50       CUDA Version: 10.1     |
|   0  Tesla V100-SXM2...  On   | 00000000:00:1E.0 Off |                    0 |
| N/A   42C    P0    40W / 300W |  15000MiB / 16130MiB |     53%      Default |
|    0     12345      C   python                                     14990MiB |
";

#[test]
fn a_table_of_today_is_read() {
    let smi = smi(find_table(NEW));
    assert_eq!(smi.devices.len(), 2);
    assert_eq!(smi.devices[0].name.as_deref(), Some("NVIDIA A100-SXM4-80GB"));
    assert_eq!(mib(smi.devices[0].total), Some(81920));
    let last = smi.devices[0].samples[0];
    assert_eq!((mib(last.used), last.utilization), (Some(78123), Some(0.97)));
    assert_eq!(smi.processes.len(), 2);
    assert_eq!(
        (smi.processes[0].pid, mib(smi.processes[0].holds)),
        (203_841, Some(77000))
    );
    assert_eq!(smi.processes[0].name, "python train.py");
}

#[test]
fn a_table_of_then_is_read() {
    let smi = smi(find_table(OLD));
    assert_eq!(smi.devices[0].name.as_deref(), Some("Tesla V100-SXM2"));
    assert_eq!(
        (mib(smi.processes[0].holds), smi.processes[0].pid),
        (Some(14990), 12345)
    );
}

#[test]
fn tables_over_time_are_samples() {
    let smi = smi(find_table(&OLD.repeat(3)));
    assert_eq!((smi.devices[0].samples.len(), smi.processes.len()), (3, 1));
}

#[test]
fn columns_may_stand_in_any_order_with_units_or_without() {
    let logs = [
        "timestamp, index, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n2024/01/01 00:00:00.000, 0, 21000 MiB, 24576 MiB, 87 %\n2024/01/01 00:00:01.000, 0, 23000 MiB, 24576 MiB, 91 %\n",
        "utilization.gpu [%], memory.total [MiB], memory.used [MiB]\n87, 24576, 21000\n91, 24576, 23000\n",
        "time,memory_used_mb,memory_total_mb,gpu_util\n0,21000,24576,87\n1,23000,24576,91\n",
        "2024/01/01 00:00:00.000, 87 %, 21000 MiB, 24576 MiB\n2024/01/01 00:00:01.000, 91 %, 23000 MiB, 24576 MiB\n",
        "memory.free [MiB], memory.total [MiB], utilization.gpu [%]\nx\n3576 MiB, 24576 MiB, 87 %\n1576 MiB, 24576 MiB, 91 %\n",
    ];
    for log in logs.iter().take(4) {
        let smi = smi(find_csv(log));
        let device = &smi.devices[0];
        assert_eq!((device.samples.len(), mib(device.total)), (2, Some(24576)), "{log}");
        assert_eq!(
            (mib(device.samples[1].used), device.samples[1].utilization),
            (Some(23000), Some(0.91)),
            "{log}"
        );
    }
    assert_eq!(mib(smi(find_csv(logs[4])).devices[0].samples[1].used), Some(23000));
}

#[test]
fn other_tables_are_left_alone() {
    for text in ["a,b\n1,2\n", "step,loss\n1,0.5\n", "", "memory,is,long\n"] {
        assert_eq!(find_csv(text), None, "{text}");
    }
}
