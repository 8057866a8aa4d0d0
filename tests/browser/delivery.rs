//! Tests the delivery of the page: its content security policy and its requests.

use crate::page::with_page;

/// Routes of the page, normal and framed.
const ROUTES: [&str; 7] = [
    "#/",
    "#/attention",
    "#/diagnose",
    "#/benchmarks",
    "#/course",
    "?embed=1#/",
    "?embed=1&widget=timeline#/?model=gpt2",
];

#[tokio::test]
async fn no_route_breaks_the_policy_or_asks_another_host() {
    with_page("", async |page| {
        for route in ROUTES {
            page.go(route).await?;
            let asked = "return performance.getEntriesByType('resource').map((e) => e.name)\
                         .filter((name) => !name.startsWith(location.origin + '/') && !/^(blob|data):/.test(name))";
            page.script::<Vec<String>>(asked).is(Vec::<String>::new()).await?;
            assert_eq!(page.errors().await?, Vec::<String>::new(), "{route}");
        }
        Ok(())
    })
    .await;
}

/// The promise to contact no other host rests on the policy, so the policy has to refuse such requests.
#[tokio::test]
async fn the_policy_refuses_other_hosts_and_inline_scripts() {
    with_page("", async |page| {
        let script = "
            const done = arguments[0], refused = [];
            const told = () => done([window.inline === true, [...new Set(refused)].sort()]);
            addEventListener('securitypolicyviolation', ({ effectiveDirective }) => {
                refused.push(effectiveDirective);
                if (new Set(refused).size === 5) told();
            });
            // Where one of them is not refused, the others are told.
            setTimeout(told, 20_000);
            const add = (name, set) => document.body.append(Object.assign(document.createElement(name), set));
            add('img', { src: 'http://localhost:9/a.png' });
            add('script', { src: 'http://localhost:9/a.js' });
            add('script', { textContent: 'window.inline = true' });
            add('style', { textContent: 'body { color: red }' });
            add('iframe', { src: 'http://localhost:9/' });
            fetch('http://localhost:9/').catch(() => {});";
        let (ran, refused): (bool, Vec<String>) = page.promise(script, vec![]).await?;
        assert!(!ran, "an inline script ran");
        let wanted = [
            "connect-src",
            "frame-src",
            "img-src",
            "script-src-elem",
            "style-src-elem",
        ];
        assert_eq!(refused, wanted);
        Ok(())
    })
    .await;
}
