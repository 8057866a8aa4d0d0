//! Starts one chromedriver per test, on its own port; it ends with the test and closes its browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use xtask::tools::Browser;

/// Most starts of chromedriver for one test.
const ATTEMPTS: usize = 5;

/// A running chromedriver.
pub struct Chromedriver {
    process: Child,
    port: u16,
}

impl Chromedriver {
    /// Starts chromedriver on a free port, which it prints. It ends at once where the port that it was given for IPv4 is
    /// taken for IPv6, as other tests' drivers may have it; then another one is started.
    pub fn start(browser: &Browser) -> Self {
        (0..ATTEMPTS)
            .find_map(|_| Self::try_start(browser))
            .expect("chromedriver prints its port")
    }

    /// Starts chromedriver; `None` if it ends without a port.
    fn try_start(browser: &Browser) -> Option<Self> {
        let mut process = Command::new(&browser.driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let output = process.stdout.take().expect("its output is piped");
        let port = BufReader::new(output).lines().map_while(Result::ok).find_map(|line| {
            line.split_once("successfully on port ")?
                .1
                .trim_end_matches('.')
                .parse()
                .ok()
        });
        match port {
            Some(port) => Some(Self { process, port }),
            None => {
                process.kill().ok();
                process.wait().ok();
                None
            }
        }
    }

    /// Address that it listens on.
    pub fn url(&self) -> String {
        format!("http://{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// Asks it to close its browsers and exit; if killed, it would leave them running.
    fn shut_down(&self) -> std::io::Result<()> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(b"GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    }
}

impl Drop for Chromedriver {
    fn drop(&mut self) {
        if self.shut_down().is_err() {
            // Fails only if it has already exited.
            self.process.kill().ok();
        }
        self.process.wait().ok();
    }
}
