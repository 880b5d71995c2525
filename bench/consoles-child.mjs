/**
 * Acts as open consoles in browsers. `node consoles-child.mjs <job as JSON>` opens one stream of hints for each cookie. It prints `open <number>` when all
 * streams are open. From then on, each console follows the hints of usage as src/console/api/live/refresher.ts does, and reads what its page shows. On SIGTERM
 * it writes what it has read to `job.report`.
 */
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'

const { url, cookies, report } = JSON.parse(process.argv[2])
const pauseMinMs = 1_000
const pauseMaxMs = 10_000
const firstMaxMs = 250
const healthEveryMs = 30_000

/** What each kind of page reads after a hint of usage. The consoles take turns. */
const pages = [
  ['/me/activity', '/me/budgets?limit=50'],
  ['/me/activity', '/me/activity?group_by=day'],
  ['/me/agents?limit=50', '/me/budgets?limit=50'],
  ['/me/keys?limit=50'],
]
const agent = new Agent({ keepAlive: true, maxSockets: cookies.length })
const counted = { hints: 0, reads: 0, failed: 0, failure: null, ended: 0 }
let open = 0

function fail(why) {
  counted.failed++
  counted.failure ??= why
}

function read(path, cookie) {
  counted.reads++
  const sent = request(url + path, { agent, headers: { cookie } }, response => {
    response.resume()
    if (response.statusCode !== 200) fail(`${path}: ${response.statusCode}`)
  })
  sent.on('error', error => fail(error.message))
  sent.end()
}

/** Reads after the first hint, and less often while hints keep coming. */
function follower(paths, cookie) {
  let pauseMs = pauseMinMs
  let readAtMs = Number.NEGATIVE_INFINITY
  let timer = null
  return () => {
    if (timer !== null) return
    const sinceMs = performance.now() - readAtMs
    pauseMs = sinceMs > 2 * pauseMaxMs ? pauseMinMs : Math.min(pauseMs * 2, pauseMaxMs)
    timer = setTimeout(
      () => {
        timer = null
        readAtMs = performance.now()
        for (const path of paths) read(path, cookie)
      },
      Math.max(pauseMs - sinceMs, 0) + Math.random() * firstMaxMs,
    )
  }
}

function openConsole(cookie, at) {
  const follow = follower(pages[at % pages.length], cookie)
  // A stream has a connection of its own, as in a browser.
  const stream = request(`${url}/me/events`, { headers: { cookie } }, response => {
    if (response.statusCode !== 200) return fail(`/me/events: ${response.statusCode}`)
    open++
    if (open === cookies.length) console.log(`open ${open}`)
    response.setEncoding('utf8')
    response.on('data', text => {
      counted.hints += text.split('data: ').length - 1
      if (text.includes('"usage"') || text.includes('"reset"')) follow()
    })
    response.on('end', () => {
      counted.ended++
    })
  })
  stream.on('error', error => fail(error.message))
  stream.end()
  setInterval(() => read('/health', cookie), healthEveryMs)
}

process.on('SIGTERM', () => {
  writeFileSync(report, JSON.stringify(counted))
  process.exit(0)
})
cookies.forEach(openConsole)
