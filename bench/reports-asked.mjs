/** The reports that `bench:reports` asks, and how long each takes over HTTP, on one connection, one after the other. */
import { percentilesOf } from './statistics.mjs'

const warmups = 3
const dayMs = 24 * 3600_000
const istOffsetMs = 5.5 * 3600_000
/** How far back the deep page of events lies. */
const deepDays = 80

const istDay = ms => new Date(ms + istOffsetMs).toISOString().slice(0, 10)

/** Asks every report `times` times and tells how long that took, and the first time, when nothing was warm. Throws when one is not answered. */
export async function askAll(client, url, world, times) {
  const token = await agentToken(url, world)
  const answers = []
  for (const { name, path, as } of await reportsOf(client, world)) {
    const headers = as === 'nobody' ? {} : { authorization: `Bearer ${as === 'agent' ? token : world.key}` }
    const ask = async () => {
      const beganMs = performance.now()
      const reply = await fetch(url + path, { headers })
      const bytes = (await reply.arrayBuffer()).byteLength
      if (reply.status !== 200) throw new Error(`${path}: ${reply.status}`)
      return { ms: performance.now() - beganMs, bytes }
    }
    const first = await ask()
    for (let i = 0; i < warmups; i++) await ask()
    const took = []
    for (let i = 0; i < times; i++) took.push((await ask()).ms)
    const { p50, max } = percentilesOf(took)
    answers.push({ name, path, bytes: first.bytes, firstMs: first.ms, p50, p95: took[Math.ceil(took.length * 0.95) - 1], max })
  }
  return answers
}

/** Rows of the console are read with an agent token, which reads as a member. */
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
  const { id } = await post('/v1/me/agents', { name: `reader-${Math.round(performance.now())}` })
  return (await post(`/v1/me/agents/${id}/token`, {})).access_token
}

async function reportsOf(client, { orgId, firstKey, nowMs }) {
  const span = days => `from=${istDay(nowMs - (days - 1) * dayMs)}&to=${istDay(nowMs)}`
  const { rows } = await client.query('select id from usage_events where org_id = $1::int and day = $2::date order by id desc limit 1', [
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
    { name: 'events, first page', path: '/me/activity/events?limit=200', as: 'agent' },
    { name: 'events, deep page', path: `/me/activity/events?limit=200&before=${rows[0].id}`, as: 'agent' },
    { name: 'events of a key', path: `/me/activity/events?limit=50&key_id=${firstKey + 7}`, as: 'agent' },
    { name: 'stats of a model', path: '/v1/models/bench-1/stats', as: 'nobody' },
    { name: 'rankings', path: '/v1/rankings', as: 'nobody' },
    { name: 'residency attestation, 30 days', path: '/v1/org/residency/attestation?window=30d', as: 'key' },
  ]
}
