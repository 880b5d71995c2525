/**
 * Whatever an owner or nobody sends to whatever row, the gateway answers with something that the row declares, never with a failure of its own.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorsOf } from '../../src/gateway/http/documents/openapi.ts'
import type { Binding } from '../../src/gateway/http/edge.ts'
import { oauthErrorCode } from '../../src/gateway/http/oauth-wire.ts'
import { bindingsOf, endpointTable } from '../../src/gateway/http/rows/endpoint-table.ts'
import { errorTable } from '../../src/platform/errors.ts'
import { startApp, type TestApp, type TestReply } from '../harness/app.ts'
import { propertyRuns } from '../harness/property-runs.ts'
import { hostileText, hostileValue, inputFor } from './hostile-values.ts'

const bindings = bindingsOf(endpointTable)
const runsPerRow = propertyRuns(25)
const deepText = `${'['.repeat(50_000)}${']'.repeat(50_000)}`

interface Request {
  readonly path: string
  /** Text goes as it is; undefined = no body. */
  readonly body: unknown
  readonly label: string | undefined
}

/** Segments that a URL keeps as they are: no dots alone, never empty. A name in braces with a plus takes slashes too. */
const segment = (name: string, known: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...(name.endsWith('+}') ? known : known.map(encodeURIComponent))) },
    { weight: 2, arbitrary: hostileText.filter(text => !/^\.{0,2}$/.test(text)).map(text => encodeURIComponent(text.slice(0, 2000).toWellFormed())) },
    { weight: 1, arbitrary: fc.constantFrom('%00', '%2F', 'a%2Fb', '%ff', '%', '%2e%2e%2f', '-', '~') },
  )

function requestTo({ at, row }: Binding, known: readonly string[]): fc.Arbitrary<Request> {
  const [method = '', pattern = ''] = at.split(' ')
  const names = [...pattern.matchAll(/\{\w+\+?\}/g)].map(match => match[0])
  const path = fc
    .tuple(...names.map(name => segment(name, known)))
    .map(values => names.reduce((made, name, i) => made.replace(name, () => values[i] ?? ''), pattern))
  const query = row.input.query === undefined ? fc.constant('') : inputFor(row.input.query, known).map(queryText)
  const { body } = row.input
  const hasBody = method !== 'GET' && method !== 'DELETE'
  const sent = !hasBody
    ? fc.constant(undefined)
    : fc.oneof(
        { weight: 8, arbitrary: body === undefined ? hostileValue : inputFor(body, known) },
        { weight: 1, arbitrary: fc.constantFrom(deepText, `{"messages":${deepText}}`, '{', '"', 'null', '\u0000', '{"a":1e999}') },
      )
  const label = fc.option(fc.constantFrom('peer', 'x'.repeat(101), 'a,b'), { freq: 6, nil: undefined })
  return fc.tuple(path, query, sent, label).map(([path, query, body, label]) => ({ path: path + query, body, label }))
}

/** A query of whatever was made for its schema: what is no object becomes one odd parameter, lists become repeated ones. */
function queryText(value: unknown): string {
  const query = new URLSearchParams()
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [['q', value]]
  for (const [name, one] of entries)
    for (const each of Array.isArray(one) ? one : [one]) query.append(String(name), typeof each === 'object' ? JSON.stringify(each) : String(each))
  return `?${query}`.slice(0, 8000)
}

function check(binding: Binding, { status, text, json, headers }: TestReply): void {
  const said = `${binding.at} answered ${status} ${text.slice(0, 300)}`
  expect(status, said).not.toBe(500)
  if (status >= 400 && binding.row.clients === 'oauth') {
    expect(json, said).toEqual({ error: expect.any(String), error_description: expect.any(String) })
    expect(
      errorsOf(binding).map(name => `${errorTable[name].status} ${oauthErrorCode(name)}`),
      said,
    ).toContain(`${status} ${json.error}`)
  } else if (status >= 400 && binding.row.clients === 'gemini') {
    expect(json?.error, said).toEqual({ code: status, message: expect.any(String), status: expect.any(String), details: expect.any(Array) })
    const [{ reason }] = json.error.details
    expect(
      errorsOf(binding).map(name => `${errorTable[name].status} ${errorTable[name].code}`),
      said,
    ).toContain(`${status} ${reason}`)
  } else if (status >= 400) {
    expect(json?.error, said).toEqual({ message: expect.any(String), type: expect.any(String), code: expect.any(String) })
    const declared = errorsOf(binding).map(name => `${errorTable[name].status} ${errorTable[name].code}`)
    expect(declared, said).toContain(`${status} ${json.error.code}`)
    expect(json.error.code, said).not.toBe('database_unavailable')
  } else if ('media' in binding.row.output) {
    if (status !== 302) expect(headers.get('content-type'), said).toContain(binding.row.output.media)
  } else if (!/^text\/(csv|markdown); charset=utf-8$/.test(headers.get('content-type') ?? '')) expect(json, said).not.toBeNull()
}

describe('odd input, row by row', () => {
  let app: TestApp
  let known: string[]
  beforeAll(async () => {
    // No name that a URL of somebody else carries leads anywhere.
    app = await startApp({
      env: { ANON_RPM: '1000000', CONSOLE_RPM: '1000000', MEMBERS_MAX: '1000000', TEAM_ORGS_MAX: '1000000' },
      lookup: (host, _options, done) => done(Object.assign(new Error(`no ${host}`), { code: 'ENOTFOUND' }), '', 0),
    })
    const { userId } = await app.newMember('member')
    const { keyId } = await app.newKey()
    const agent = await app.newAgent('odd')
    known = [
      ...new Set([keyId, userId, agent.id, app.orgId].map(String)),
      '1',
      'test-model',
      'alpha-only',
      'alpha',
      'auto:',
      'member',
      'odd',
      'peer@people.test',
      '10',
      'agents/odd/a.md',
    ]
  })
  afterAll(() => app.stop())

  for (const binding of bindings)
    test(binding.at, async () => {
      const [method = ''] = binding.at.split(' ')
      const cookie = await app.signIn()
      const token = (await app.newKey()).key
      await fc.assert(
        fc.asyncProperty(requestTo(binding, known), fc.boolean(), async ({ path, body, label }, isSignedIn) => {
          const isSession = binding.auth === 'session' || (binding.auth !== 'key' && isSignedIn)
          const isForm = binding.row.input.bodyKind === 'form' && typeof body === 'object' && body !== null
          const type = isForm ? 'application/x-www-form-urlencoded' : 'application/json'
          const headers = { ...(label === undefined ? {} : { 'x-br-agent-id': label }), ...(body === undefined ? {} : { 'content-type': type }) }
          const sent = isForm ? queryText(body).slice(1) : body
          check(binding, await app.call(method, path, sent, { ...(isSession ? { cookie } : { token }), headers }))
        }),
        { numRuns: runsPerRow },
      )
    })

  test('and the gateway is well afterwards', async () => {
    const reply = await app.call('GET', '/me', undefined, { cookie: await app.signIn() })
    expect(reply.status).toBe(200)
    expect(app.logLines.filter(line => line.includes('internal_error'))).toEqual([])
  })
})
