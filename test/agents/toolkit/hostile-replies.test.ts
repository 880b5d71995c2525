/** The toolkit under failures: servers that send replies unlike the gateway's, invalid credentials, and clocks that stop. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { agentFetch } from '../../../src/agents/toolkit/agent-fetch.ts'
import { AgentRevokedError } from '../../../src/agents/toolkit/brigade-error.ts'
import { connectAgent } from '../../../src/agents/toolkit/connect-agent.ts'
import { gatewayClient } from '../../../src/agents/toolkit/gateway-client.ts'
import { createAgentTokenProvider } from '../../../src/agents/toolkit/token-provider.ts'
import { until } from '../../harness/until.ts'
import { wordsOf } from './setup.ts'

interface Answer {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: string
}

const secret = 'br-the-secret-of-this-test'
const servers: Server[] = []
const seen: IncomingMessage[] = []
/** The next answers of the server. After them, it answers a mint with a token and every other request with an empty object. */
let answers: Answer[] = []
let baseUrl = ''
let elsewhereUrl = ''

async function listening(): Promise<string> {
  let mints = 0
  const server = createServer((request, response) => {
    seen.push(request)
    const isMint = request.url?.endsWith('/token') === true
    const body = isMint ? { access_token: `token-${++mints}`, expires_in: 900, agent_id: 7, scope: 'inference' } : {}
    const answer = answers.shift()
    const headers = { 'content-type': 'application/json', ...answer?.headers }
    response.writeHead(answer?.status ?? 200, headers).end(request.method === 'HEAD' ? undefined : (answer?.body ?? JSON.stringify(body)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  servers.push(server)
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

beforeAll(async () => {
  baseUrl = await listening()
  elsewhereUrl = await listening()
})
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections()
})
beforeEach(() => {
  seen.length = 0
  answers = []
})

const provider = (options: object = {}) => createAgentTokenProvider({ baseUrl, agent: 7, credential: secret, ...options })
const failure = async (work: Promise<unknown>): Promise<Error> => {
  const thrown = await work.then(
    () => new Error('nothing was thrown'),
    (error: unknown) => error,
  )
  if (!(thrown instanceof Error)) throw new TypeError('what was thrown is no error')
  return thrown
}

describe('a credential', () => {
  test.each([
    ['two lines of a file', `${secret}\nsecond`],
    ['a header of its own', `${secret}\r\nx-admin: yes`],
    ['what was pasted with the word before it', `Bearer ${secret}`],
    ['typographic quotes', `“${secret}”`],
    ['nothing, from a variable that is not set', undefined],
    ['null', null],
    ['a number', 7],
  ])('a credential that is %s is refused before any request is sent, and the message never contains it', async (_name, given) => {
    const credential = given as string
    const fetched = async () => {
      const reply = await agentFetch(credential)(`${baseUrl}/v1/models`)
      expect(reply.status).toBe(401)
      throw new Error(await reply.text())
    }
    for (const work of [
      provider({ credential }).getToken(),
      provider({ credential: async () => credential }).getToken(),
      connectAgent({ baseUrl, credential }).whoami(),
      connectAgent({ baseUrl, credential, exchange: true }).whoami(),
      gatewayClient({ baseUrl, credential }).send('GET', '/'),
      fetched(),
    ]) {
      const thrown = await failure(work)
      expect(`${inspect(thrown, { depth: 9, showHidden: true })} ${wordsOf(thrown)}`).not.toContain(secret)
      expect(thrown.message).toMatch(/The credential (is empty|has a space)/)
    }
    expect(seen).toEqual([])
  })

  test("a credential is not visible when a program prints the toolkit's objects", async () => {
    const agent = connectAgent({ baseUrl, agent: 7, credential: secret })
    const token = await agent.tokens.getToken()
    const shown = inspect([agent, agent.openai(), agent.langchain(), agent.mcp(), agentFetch(secret)], { depth: 9, showHidden: true }) + JSON.stringify(agent)
    for (const hidden of [secret, token]) expect(shown).not.toContain(hidden)
  })

  test('a credential is never sent to another host, whether by a path, a redirect or an address', async () => {
    const client = gatewayClient({ baseUrl, credential: secret })
    for (const path of ['@127.0.0.1:1/x', '.example.com/x', 'v1/models', ''])
      await expect(client.send('GET', path)).rejects.toThrow('path must begin with a slash')
    await expect(gatewayClient({ baseUrl: `${baseUrl}/below`, credential: secret }).send('GET', '/../other')).rejects.toThrow('stay below the address')
    answers = [{ status: 307, headers: { location: `${elsewhereUrl}/x?code=once` } }]
    const refused = await failure(client.send('PUT', '/v1/x', { json: {} }))
    expect(refused).toMatchObject({ code: 'wrong_address', message: expect.stringContaining(`to ${elsewhereUrl}/x. Give`) })
    expect(seen).toHaveLength(1)
    answers = [{ status: 307, headers: { location: `${elsewhereUrl}/x` } }]
    await agentFetch(secret, fetch, { baseUrl })('/v1/models')
    expect(seen.at(-1)?.headers.host).toBe(new URL(elsewhereUrl).host)
    expect(seen.at(-1)?.headers).not.toHaveProperty('authorization')
  })

  test('options that no header can contain are refused without requesting a credential', () => {
    for (const agentLabel of ['নাম', 'a\r\nb: c', '', 'x'.repeat(101)]) expect(() => agentFetch(secret, fetch, { agentLabel })).toThrow('agentLabel must be')
    for (const userAgent of ['ü', 'a\nb']) expect(() => agentFetch(secret, fetch, { userAgent })).toThrow('userAgent must be')
    expect(() => connectAgent({ credential: secret } as never)).toThrow('baseUrl must be the http(s) address')
  })

  test('a credential and a memory key with an unpaired surrogate are refused', async () => {
    const { memory } = connectAgent({ baseUrl, credential: secret })
    for (const work of [memory.write('agents/\ud800', 'x'), memory.read('agents/\udc00x'), memory.remove('\ud800')])
      await expect(work).rejects.toThrow('key has half a character')
    expect(seen).toEqual([])
  })

  test('a credential needs an agent by name or id, and space around the name is ignored', async () => {
    for (const agent of ['', ' ', Number.NaN, 1.5, undefined]) expect(() => provider({ agent })).toThrow('agent is missing')
    answers = [{ body: '{"agents":[{"id":7,"name":"triage","status":"active"}],"next_cursor":null}' }]
    expect(await provider({ agent: ' triage\n' }).getToken()).toMatch(/^token-/)
  })

  test('the address of a gateway whose host is named v1 works', () => {
    expect(connectAgent({ baseUrl: 'http://v1', credential: secret }).baseUrl).toBe('http://v1')
    expect(connectAgent({ baseUrl: 'http://v1/v1/', credential: secret }).baseUrl).toBe('http://v1')
  })
})

describe('a server that is not the gateway', () => {
  test.each([
    ['a page', '<!doctype html>'],
    ['other JSON', '{"status":"ok"}'],
    ['null', 'null'],
    ['a list', '[]'],
    ['a token without an end', '{"access_token":"a","expires_in":"soon"}'],
  ])('a server that answers a mint with %s is named in the error, and is not asked repeatedly', async (_name, body) => {
    answers = Array(5).fill({ body })
    for (const agent of [7, 'triage'])
      await expect(provider({ agent }).getToken()).rejects.toMatchObject({ code: 'wrong_address', status: 400, message: expect.stringContaining(baseUrl) })
    expect(seen).toHaveLength(2)
    answers = [{ body: '<!doctype html>' }]
    await expect(gatewayClient({ baseUrl, credential: secret }).json('GET', '/v1/me/whoami')).rejects.toMatchObject({ code: 'wrong_address' })
  })

  test('a server that cuts the connection is distinguished from a missing one', async () => {
    const gone = createServer().listen(0, '127.0.0.1')
    await once(gone, 'listening')
    const { port } = gone.address() as AddressInfo
    const client = gatewayClient({ baseUrl: `http://127.0.0.1:${port}`, credential: secret })
    gone.on('request', (request: IncomingMessage) => request.socket.destroy())
    await expect(client.send('GET', '/')).rejects.toThrow(/^fetch failed: the connection to http.* was cut \(\w+\)/)
    gone.close().closeAllConnections()
    await once(gone, 'close')
    await expect(client.send('GET', '/')).rejects.toThrow(/^fetch failed: no gateway answers at http/)
  })

  test('the 401 of a proxy is returned unchanged, and causes no new token', async () => {
    answers = [{}, { status: 401, headers: { 'www-authenticate': 'Basic realm="proxy"' }, body: '<h1>Sign in</h1>' }]
    const reply = await agentFetch(provider())(`${baseUrl}/v1/models`)
    expect([reply.status, await reply.text(), seen.length]).toEqual([401, '<h1>Sign in</h1>', 2])
  })
})

describe('retry-after', () => {
  const said = async (headers: Record<string, string>) => {
    answers = [{ status: 503, headers }]
    return failure(gatewayClient({ baseUrl, credential: secret }).send('GET', '/'))
  }

  test('retry-after may be a date, by the clock of the server that sent it', async () => {
    const date = 'Sat, 01 Aug 2026 10:00:00 GMT'
    expect(await said({ date, 'retry-after': 'Sat, 01 Aug 2026 10:00:30 GMT' })).toMatchObject({ retryAfterS: 30 })
    expect(await said({ date, 'retry-after': 'Sat, 01 Aug 2026 09:00:00 GMT' })).toMatchObject({ retryAfterS: 0 })
    for (const nonsense of ['', '-5', 'soon', 'NaN', '1e999', '9'.repeat(400)])
      expect(await said({ 'retry-after': nonsense })).toMatchObject({ retryAfterS: null })
  })

  test('a retry-after of a day is reduced', async () => {
    let nowMs = 0
    const tokens = provider({ now: () => nowMs })
    answers = [{ status: 503, headers: { 'retry-after': '86400' } }]
    await expect(tokens.getToken()).rejects.toMatchObject({ retryAfterS: 86_400 })
    nowMs = 10 * 60_000
    await expect(tokens.getToken()).rejects.toMatchObject({ retryAfterS: 86_400 })
    expect(seen).toHaveLength(1)
    nowMs = 20 * 60_000
    expect(await tokens.getToken()).toMatch(/^token-/)
  })
})

describe('an agent that is revoked', () => {
  const revoked = { status: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token", error_description="agent_revoked"' } }

  test.each(['HEAD', 'GET'])('a revoked agent is recognised by the header alone, in a reply to %s without a useful body', async method => {
    const tokens = provider()
    const signed = agentFetch(tokens)
    answers = [{}, { ...revoked, body: '' }]
    const reply = await signed(`${baseUrl}/v1/models`, { method })
    expect([reply.status, await reply.json()]).toMatchObject([401, { error: { code: 'agent_revoked' }, reason: 'agent_revoked' }])
    expect(tokens.revoked).toBeInstanceOf(AgentRevokedError)
    expect((await signed(`${baseUrl}/v1/models`)).status).toBe(401)
    expect(seen).toHaveLength(2)
  })

  test("a revocation calls the owner's callback. A later failure of the callback does not end the program", async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown): void => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    let ends = 0
    const tokens = provider({
      onRevoked: async () => {
        ends++
        throw new Error('a pager that is away')
      },
    })
    answers = [{}, { ...revoked, body: '{}' }]
    await agentFetch(tokens)(`${baseUrl}/v1/models`)
    await until(() => ends === 1, 'the callback')
    await new Promise(resolve => setImmediate(resolve))
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })

  test('a revocation ends a forced mint for all waiting callers too', async () => {
    const tokens = provider()
    const waiting = [tokens.getToken({ forceRefresh: true }), tokens.getToken(), tokens.getToken({ forceRefresh: true, refused: 'x' })]
    tokens.noteRevoked(new AgentRevokedError({ status: 401, code: 'agent_revoked', message: 'gone' }))
    for (const outcome of await Promise.allSettled(waiting)) expect(outcome).toMatchObject({ status: 'rejected', reason: { message: 'gone' } })
    expect(seen).toHaveLength(1)
  })
})

describe('calls and clocks', () => {
  test('after the machine slept, or its clock was set forward, one new token is minted before the next call', async () => {
    const tokens = provider({ now: () => 0 })
    expect(await tokens.getToken()).toBe(await tokens.getToken())
    try {
      vi.setSystemTime(Date.now() + 3_600_000)
      const after = await tokens.getToken()
      expect(seen).toHaveLength(2)
      expect(await tokens.getToken()).toBe(after)
      vi.setSystemTime(Date.now() - 7_200_000)
      expect(await tokens.getToken(), 'set back: nothing happens').toBe(after)
      vi.setSystemTime(Date.now() + 14_400_000)
      answers = Array(9).fill({ status: 503 })
      expect(await tokens.getToken(), 'the gateway is away, and the token may be good').toBe(after)
    } finally {
      vi.useRealTimers()
    }
  })

  test('aborting one call does not abort other calls', async () => {
    const signed = agentFetch(provider(), fetch, { baseUrl })
    const stop = new AbortController()
    const [given, kept] = [signed('/v1/models', { signal: stop.signal }), signed('/v1/models')]
    stop.abort(new Error('enough'))
    await expect(given).rejects.toThrow('enough')
    expect((await kept).status).toBe(200)
    expect(seen.map(({ url }) => url)).toEqual(['/v1/me/agents/7/token', '/v1/models'])
  })

  test('after a failed renewal the next one succeeds, and two providers share no state', async () => {
    const [one, two] = [provider(), provider({ agent: 8 })]
    await Promise.all([one.getToken(), two.getToken()])
    answers = [{ status: 400, body: '{"error":{"code":"bad_request","message":"no"}}' }]
    await expect(one.getToken({ forceRefresh: true })).rejects.toMatchObject({ code: 'bad_request' })
    expect(await one.getToken({ forceRefresh: true })).toMatch(/^token-/)
    one.noteRevoked(new AgentRevokedError({ status: 401, code: 'agent_revoked', message: 'gone' }))
    expect(await two.getToken()).toMatch(/^token-/)
  })
})
