import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scanLines, scanStep } from '../../../src/gateway/audit/queries.ts'
import { type Db, type Statement, statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

const lineCount = 45_000
// A key of scope inference leaves one line with each refused call. The rows are inserted because that takes minutes over HTTP.
const addLines = statement<[orgId: number, count: number]>(
  'test.audit_pages_add_lines',
  `insert into audit_log (org_id, at, actor_kind, actor_id, act, target, source_ip, request_id, outcome)
   select $1::int, now(), 'key', '5', case when i = 10 then 'rare' else 'promote' end, null, '192.0.2.1', 'req-' || i, 'forbidden'
   from generate_series(1, $2::int) i`,
)
type Params = typeof scanLines extends Statement<infer P, unknown> ? P : never
const explained = statement<Params, { 'QUERY PLAN': unknown }>('test.audit_pages_explain', `explain (analyze, format json) ${scanLines.text}`)

interface Node {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly Node[]
}

/** Returns the nodes of a plan. */
const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

async function planOf(db: Db, ...params: Params): Promise<Node[]> {
  const { 'QUERY PLAN': plan } = await db.one(explained, ...params)
  const [{ Plan: root }] = (typeof plan === 'string' ? JSON.parse(plan) : plan) as [{ Plan: Node }]
  return nodesOf(root)
}

describe('the audit trail of an organisation with many lines', () => {
  let app: TestApp
  let cookie: string
  beforeAll(async () => {
    app = await startApp()
    cookie = await app.signIn()
    await app.db.exec(addLines, app.orgId, lineCount)
  })
  afterAll(() => app.stop())

  const read = async (query: string) => {
    const reply = await app.call('GET', `/me/audit?${query}`, undefined, { cookie })
    expect(reply.status).toBe(200)
    return reply.json
  }

  test('a page reads only the lines at which it looks, also deep in the trail', async () => {
    const middle = BigInt((await read('limit=1')).entries[0].id - lineCount / 2)
    for (const before of [null, middle]) {
      for (const [steps, act] of [
        [3, null],
        [20, 'rare'],
      ] as const) {
        // Each line is read once to find the end of the scan, and once to judge it.
        const reads = (await planOf(app.db, app.orgId, before, null, null, act, null, null, 51, steps)).filter(node => node['Relation Name'] === 'audit_log')
        expect(reads.length).toBeGreaterThan(0)
        for (const node of reads) {
          const rows = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']
          expect(rows, node['Node Type']).toBeLessThanOrEqual(scanStep * (steps + 1))
        }
      }
    }
  })

  test('a page with a filter looks at 20,000 lines, and the cursor goes on until it has found all lines that match', async () => {
    const found: string[] = []
    const pages: number[] = []
    for (let before = ''; ; ) {
      const { entries, next_before: next } = await read(`act=rare&limit=200${before}`)
      pages.push(entries.length)
      found.push(...entries.map((entry: { request_id: string }) => entry.request_id))
      if (next === null) break
      before = `&before=${next}`
    }
    expect(found).toEqual(['req-10'])
    expect(pages).toEqual([0, 0, 1])
    expect((await read('act=promote&limit=50')).entries).toHaveLength(50)
  })
})
