/** The organisation of `bench:console`: a gateway on PostgreSQL with many keys, agents and calls, and a store with many objects. */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../scripts/paths.mjs'
import { runToEnd, startServer } from './child.mjs'
import { fromHarness } from './from-test.mjs'
import { newDatabase } from './postgres-run.mjs'
import { fillEvents, fillNames } from './reports-events.mjs'

const email = 'bench@example.test'
/** Objects of one folder of the store. */
const perFolder = 250
const brigade = async (env, words) => JSON.parse(await runToEnd(null, [join(root, 'dist', 'cli', 'brigade.js'), ...words, '--json'], { env, cwd: root }))

/** Fills a new database, and starts a gateway on it. Returns its address, and a link that signs the owner in. */
export async function startLargeOrg(server, folder, { keys, agents, calls, objects }, say) {
  const { default: pg } = await import('pg')
  const databaseUrl = await newDatabase(server, 'bench_console')
  const { startS3Server } = await fromHarness('s3-server.ts', folder)
  const store = await startS3Server()
  const env = settingsOf(folder, databaseUrl, store)
  const made = await brigade(env, ['admin', 'create', '--email', email, '--org', 'Bench', '--rpm', '100000000', '--daily', '100000000'])
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  const world = { orgId: made.org_id, key: made.key, nowMs: Date.now(), ...(await fillNames(client, made.org_id)) }
  say(`${calls.toLocaleString('en')} calls`)
  await fillEvents(client, world, calls, say)
  await brigade(env, ['admin', 'usage', 'rebuild'])
  say(`${keys.toLocaleString('en')} keys, ${agents.toLocaleString('en')} agents, ${objects.toLocaleString('en')} objects`)
  await fillLists(client, world.orgId, keys, agents)
  await fillStore(client, store, world.orgId, objects)
  await client.query('vacuum analyze')
  await client.end()
  const gateway = await startServer(null, [join(root, 'dist', 'main.js')], { env, cwd: root, ready: /listens on (http:\S+)/ })
  const url = gateway.match[1]
  await connectStore(url, made.key, store)
  const { url: link } = await brigade(env, ['admin', 'sign-in', '--email', email])
  const stop = async () => {
    await gateway.stop()
    await store.close()
  }
  return { url, signInLink: Object.assign(new URL(link), { host: new URL(url).host }).href, stop }
}

function settingsOf(folder, databaseUrl, store) {
  mkdirSync(join(folder, 'data'), { recursive: true })
  return {
    HOST: '127.0.0.1',
    PORT: '0',
    DATABASE_URL: databaseUrl,
    MASTER_KEY: randomBytes(32).toString('base64'),
    DATA_DIR: join(folder, 'data'),
    OUTBOUND_ALLOW: store.hostPort,
    LOCAL_SERVERS: 'off',
    PRICE_FEED_URL: 'off',
    LOG_LEVEL: 'error',
    CONSOLE_RPM: '1000000',
    ANON_RPM: '1000000',
  }
}

/** Makes the keys and agents that the organisation has in addition to those of its calls. A tenth of the keys ended, and a fifth of the agents are children. */
async function fillLists(client, orgId, keys, agents) {
  await client.query(
    `insert into api_keys (org_id, name, hash, prefix, created_at, last_used_at, revoked_at)
     select $1::int, 'service ' || i, sha256(('console' || i)::bytea), 'br-bench', now() - i * interval '1 second',
       case when i % 3 = 0 then now() - i * interval '1 minute' end, case when i % 10 = 0 then now() end from generate_series(1, $2::int) i`,
    [orgId, keys],
  )
  await client.query(
    `insert into agents (org_id, name, created_at, last_call_at)
     select $1::int, 'worker ' || i, now() - i * interval '1 second', case when i % 2 = 0 then now() - i * interval '1 minute' end
     from generate_series(1, $2::int) i`,
    [orgId, agents],
  )
  await client.query(
    `update agents set parent_id = (select min(id) from agents where org_id = $1) + 100 + id % 200, depth = 1
     where org_id = $1 and id % 5 = 0 and id > (select min(id) from agents where org_id = $1) + 300`,
    [orgId],
  )
}

/** Writes objects into the store as agents would have, and the rows that name their authors. */
async function fillStore(client, store, orgId, objects) {
  const keyOf = number => `org/records/topic-${String(Math.floor(number / perFolder)).padStart(4, '0')}/note-${number}.md`
  for (let number = 0; number < objects; number++) store.put(`org-${orgId}/${keyOf(number)}`, `# Note ${number}\n\nA short record of the bench.\n`)
  await client.query(
    `insert into memory_objects (org_id, key, etag, size_bytes, user_id, written_at)
     select $1::int, 'org/records/topic-' || lpad((i / $3::int)::text, 4, '0') || '/note-' || i || '.md', md5('note' || i), 45, 1, now()
     from generate_series(0, $2::int - 1) i`,
    [orgId, objects, perFolder],
  )
}

async function connectStore(url, key, { endpoint, bucket, accessKey, secretKey }) {
  const response = await fetch(`${url}/v1/me/memory-store`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ store: 's3', endpoint, bucket, access_key: accessKey, secret_key: secretKey, region: 'us-east-1' }),
  })
  if (!response.ok) throw new Error(`the memory store was refused: ${await response.text()}`)
}
