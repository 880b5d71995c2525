/** Requests the reports of `bench:reports` over HTTP, one after the other, and measures how long each takes. */
import { percentilesOf } from './statistics.mjs'

const warmups = 3
const dayMs = 24 * 3600_000
const istOffsetMs = 5.5 * 3600_000
/** Number of days between now and the deep page of events. */
const deepDays = 80

const istDay = ms => new Date(ms + istOffsetMs).toISOString().slice(0, 10)

/**
 * Requests every report from both gateways in turn, so that other work on the machine affects both. The first request of a report is measured separately,
 * because all caches are cold then. After that it is requested `times` times. Returns one list for each gateway. Throws when a report fails.
 */
export async function askBoth(sides, times) {
  const asked = await Promise.all(
    sides.map(async side => ({ side, token: await agentToken(side.url, side.world), reports: await reportsOf(side.client, side.world) })),
  )
  const answers = asked.map(() => [])
  for (const index of asked[0].reports.keys()) {
    const took = asked.map(() => [])
    const first = []
    for (const one of asked) first.push(await ask(one, index))
    for (let i = 0; i < warmups + times; i++) for (const [place, one] of asked.entries()) took[place].push((await ask(one, index)).ms)
    for (const [place, { reports }] of asked.entries()) {
      const warm = took[place].slice(warmups)
      const { p50, max } = percentilesOf(warm)
      const { name, path } = reports[index]
      answers[place].push({
        name,
        path,
        bytes: first[place].bytes,
        firstMs: first[place].ms,
        best: warm[0],
        p50,
        p95: warm[Math.ceil(warm.length * 0.95) - 1],
        max,
      })
    }
  }
  return answers
}

async function ask({ side, token, reports }, index) {
  const { path, as } = reports[index]
  const headers = as === 'nobody' ? {} : { authorization: `Bearer ${as === 'agent' ? token : side.world.key}` }
  const beganMs = performance.now()
  const reply = await fetch(side.url + path, { headers })
  const bytes = (await reply.arrayBuffer()).byteLength
  if (reply.status !== 200) throw new Error(`${path}: ${reply.status}`)
  return { ms: performance.now() - beganMs, bytes }
}

/** Returns an agent token, which may read what a member may read. It is used for the endpoints of the console. */
async function agentToken(url, { key }) {
  const post = async (path, body) => {
    const reply = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`)
    return reply.json()
  }
  const { id } = await post('/v1/me/agents', { name: 'reader' })
  return (await post(`/v1/me/agents/${id}/token`, {})).access_token
}

async function reportsOf(client, { orgId, firstKey, firstAgent, nowMs }) {
  const span = days => `from=${istDay(nowMs - (days - 1) * dayMs)}&to=${istDay(nowMs)}`
  const { rows } = await client.query('select id, request_id from usage_events where org_id = $1::int and day = $2::date order by id desc limit 1', [
    orgId,
    istDay(nowMs - deepDays * dayMs),
  ])
  return [
    { name: 'usage, 30 days', path: `/v1/usage?${span(30)}`, as: 'key' },
    { name: 'usage, 90 days', path: `/v1/usage?${span(90)}`, as: 'key' },
    { name: 'usage.csv, 30 days', path: `/v1/usage.csv?${span(30)}`, as: 'key' },
    { name: 'usage of keys', path: '/me/usage', as: 'agent' },
    { name: 'usage by day', path: '/me/usage/daily', as: 'agent' },
    { name: 'activity', path: '/me/activity', as: 'agent' },
    { name: 'activity, 90 days', path: `/me/activity?${span(90)}`, as: 'agent' },
    { name: 'activity of a model', path: '/me/activity?model=bench-1', as: 'agent' },
    { name: 'activity of a key', path: `/me/activity?key_id=${firstKey + 7}`, as: 'agent' },
    { name: 'activity of a provider', path: '/me/activity?provider=bench-global', as: 'agent' },
    { name: 'activity of an agent', path: `/me/activity?agent_id=${firstAgent + 3}`, as: 'agent' },
    { name: 'activity of a person', path: '/me/activity?uid=7', as: 'agent' },
    { name: 'activity of a workspace', path: '/me/activity?workspace_id=4', as: 'agent' },
    { name: 'activity of an agent, 90 days', path: `/me/activity?agent_id=${firstAgent + 3}&${span(90)}`, as: 'agent' },
    { name: 'activity by hour, 3 days', path: `/me/activity?group=hour&${span(3)}`, as: 'agent' },
    { name: 'activity of an agent by hour', path: `/me/activity?group=hour&agent_id=${firstAgent + 3}&${span(3)}`, as: 'agent' },
    { name: 'activity.csv, 30 days', path: '/me/activity?format=csv', as: 'agent' },
    { name: 'events, first page', path: '/me/activity/events?limit=200', as: 'agent' },
    { name: 'events, deep page', path: `/me/activity/events?limit=200&before=${rows[0].id}`, as: 'agent' },
    { name: 'events of a key', path: `/me/activity/events?limit=50&key_id=${firstKey + 7}`, as: 'agent' },
    { name: 'events of a person', path: '/me/activity/events?limit=50&uid=7', as: 'agent' },
    { name: 'events of an outcome', path: '/me/activity/events?limit=50&outcome=client_gone', as: 'agent' },
    { name: 'events without a match', path: '/me/activity/events?limit=50&kind=speech', as: 'agent' },
    { name: 'events of a request', path: `/me/activity/events?request_id=${rows[0].request_id}`, as: 'agent' },
    { name: 'one call', path: `/me/activity/events/${rows[0].request_id}`, as: 'agent' },
    { name: 'stats of a model', path: '/v1/models/bench-1/stats', as: 'nobody' },
    { name: 'rankings', path: '/v1/rankings', as: 'nobody' },
    { name: 'residency attestation, 30 days', path: '/v1/org/residency/attestation?window=30d', as: 'key' },
  ]
}
