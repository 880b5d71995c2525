/** A provider key that the provider refuses, at the start of a real process and by `brigade doctor`, with real HTTP providers. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type GatewayProcess, startProcess } from '../harness/process.ts'
import { startProgram } from '../harness/started-program.ts'
import { until } from '../harness/until.ts'
import { startUpstream, type UpstreamServer } from '../harness/upstream-server.ts'

const cli = fileURLToPath(new URL('../../dist/cli/brigade.js', import.meta.url))

describe('a provider key of the operator', { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-key-'))
  let refusing: UpstreamServer
  let silent: UpstreamServer
  let good: UpstreamServer
  let gateway: GatewayProcess
  let env: Record<string, string>
  beforeAll(async () => {
    ;[refusing, silent, good] = await Promise.all([startUpstream(), startUpstream(), startUpstream()])
    refusing.script(() => ({ status: 401, body: { error: { message: 'Incorrect key sk-wrong-key' } } }))
    silent.script(() => ({ hang: true }))
    env = {
      DATA_DIR: join(folder, 'data'),
      SANDBOX: '',
      LOG_LEVEL: 'info',
      OPENAI_API_KEY: 'sk-wrong-key',
      OPENAI_BASE_URL: refusing.url,
      GROQ_API_KEY: 'gsk_silent',
      GROQ_BASE_URL: silent.url,
      // Nothing listens on this port.
      MISTRAL_API_KEY: 'mistral-away',
      MISTRAL_BASE_URL: 'http://127.0.0.1:9/v1',
      DEEPSEEK_API_KEY: 'deepseek-good',
      DEEPSEEK_BASE_URL: good.url,
    }
    gateway = await startProcess(env, folder)
  })
  afterAll(async () => {
    await gateway?.kill()
    await Promise.all([refusing, silent, good].map(each => each?.close()))
    rmSync(folder, { recursive: true, force: true })
  })
  const warnings = (): { msg: string }[] =>
    gateway
      .output()
      .split('\n')
      .filter(line => line.startsWith('{"level":40'))
      .map(line => JSON.parse(line) as { msg: string })

  test('FIRST-03 a refused key is said at the start and by doctor, by one free request to each provider, and a silent provider does not hold the start up', async () => {
    await until(() => warnings().length > 0, 'a warning about the refused key')
    // The other requests have ended after 3 seconds, and none of them is a refusal.
    await until(() => silent.requests.length === 1 && silent.requests[0]?.aborted === true, 'the end of the request to the silent provider', 10_000)
    expect(warnings().map(({ msg }) => msg)).toEqual(['OpenAI refuses the key in OPENAI_API_KEY, so calls to it fail. Correct OPENAI_API_KEY and restart.'])
    for (const upstream of [refusing, silent, good]) expect(upstream.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /v1/models'])
    expect(refusing.requests[0]?.headers.authorization).toBe('Bearer sk-wrong-key')

    const doctor = startProgram(process.execPath, [cli, 'doctor'], { cwd: folder, env: { HOME: folder, LOCAL_SERVERS: 'off', ...env } })
    expect(await doctor.ended).toBe(1)
    const lines = doctor.out().split('\n')
    expect(lines).toContain('WRONG   key of openai: OpenAI refuses the key in OPENAI_API_KEY, so calls to it fail. Correct OPENAI_API_KEY and restart.')
    expect(lines).toContain('warning key of groq: could not be tried: no answer within 3 s')
    expect(lines).toContain('warning key of mistral: could not be tried: ECONNREFUSED')
    expect(lines).toContain('ok      provider keys: accepted by deepseek')
    expect(lines.find(line => line.includes('sandbox:'))).toMatch(/^ok {6}sandbox: is off, because \w+_API_KEY is set\. SANDBOX=on keeps it on$/)
    expect(lines.filter(line => line !== '').at(-1)).toMatch(/^\d+ ok, 2 warnings, 1 wrong$/)
    for (const text of [gateway.output(), doctor.out()]) expect(text).not.toMatch(/sk-wrong-key|gsk_silent|mistral-away|deepseek-good/)
  })
})
