//! Simulates data loading: workers that prepare batches, a copy, and the step that waits for them.
//!
//! It follows PyTorch's `DataLoader`: each worker prepares whole batches, one stage after the other, up to `prefetch`
//! batches ahead; the training loop takes them in order.

use serde::Serialize;

/// One stage of work on a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Name of the stage, such as `decode`.
    pub name: &'static str,
    /// Seconds per batch.
    pub seconds: f64,
    /// Executor of the stage.
    pub by: By,
}

/// Executor of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A worker process.
    Worker,
    /// The copy engine, in parallel with the previous step (pinned memory, `non_blocking=True`).
    Copy,
    /// The training loop or its GPU, which does nothing else meanwhile.
    Loop,
}

/// Data loading of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// Stages in order.
    pub stages: Vec<Stage>,
    /// Number of worker processes; 0 prepares batches in the training loop.
    pub workers: u64,
    /// Number of batches that each worker prefetches (`prefetch_factor`).
    pub prefetch: u64,
    /// Number of CPU cores, which the workers share if there are more of them.
    pub cores: u64,
    /// Seconds of a training step.
    pub step: f64,
}

/// One bar of a Gantt chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    /// Row: workers from 0, then the copy engine, then the training loop.
    pub row: u64,
    /// Index of the batch.
    pub batch: u64,
    /// Name of the stage; `step` for the training step.
    pub name: &'static str,
    /// Start in seconds.
    pub begin: f64,
    /// End in seconds.
    pub end: f64,
}

/// Steady state of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Seconds from one step to the next.
    pub interval: f64,
    /// Share of the interval in which the GPU waits for data.
    pub idle_share: f64,
    /// Gantt chart of the first batches.
    pub bars: Vec<Bar>,
}

/// Number of batches that are simulated to reach the steady state.
const PLAYED: u64 = 512;
const DRAWN: u64 = 12;

impl Pipeline {
    fn seconds(&self, by: By) -> f64 {
        self.stages.iter().filter(|s| s.by == by).map(|s| s.seconds).sum()
    }

    /// Simulates batch after batch; the second half gives the steady state.
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
            // A worker starts when it is free and the loop has taken the batch that makes room.
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
            // The loop requests the next batch when it starts this step.
            if let Some(last) = taken.last_mut() {
                *last = last.max(now);
            }
            ends.push(gpu);
        }
        // Average over whole rounds of the workers, since batches may come in bursts.
        let last = ends.len() - 1;
        let rounds = (last / 2 / lanes as usize).max(1) * lanes as usize;
        let interval = (ends[last] - ends[last.saturating_sub(rounds)]) / rounds.min(last) as f64;
        Flow {
            interval,
            idle_share: (1.0 - self.step / interval).max(0.0),
            bars,
        }
    }

    /// Smallest number of workers, up to `most`, within 1% of the shortest interval.
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

    /// Seconds per batch of the slowest part, which limits the throughput.
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

    /// Pipeline of exercise 11.3: read 50, decode 30, resize 40, copy 20 ms, all in the training loop: 140 ms per
    /// batch.
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

    /// The course's answer: less than 40 ms with 4 workers, decoding on the GPU in 15 ms, and a copy during the step.
    /// Workers then read and resize in 90 ms, four at a time: 22.5 ms per batch, more than the copy's 20.
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
        // The copy runs in the loop.
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
