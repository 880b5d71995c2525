/** The lines of examples/<client>/README.md with the real clients, each in a clean home, on the gateway of a first start. */
import { readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectAgent } from '../../src/agents/toolkit/connect-agent.ts'
import { checkout } from '../cli/page-lines.ts'
import { type GatewayProcess, startProcess } from '../harness/process.ts'
import { programOf, run, throwAwayHome } from './programs.ts'

let gateway: GatewayProcess
const homes: { remove(): void }[] = []
beforeAll(async () => {
  gateway = await startProcess({ SANDBOX: 'on' })
})
afterAll(async () => {
  for (const home of homes) home.remove()
  await gateway.kill()
  rmSync(gateway.dataDir, { recursive: true, force: true })
})

const quiet = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' }

test.each([
  { client: 'codex', agent: 'codex', said: 'Codex was here.', setting: 'CODEX_PROGRAM' },
  { client: 'claude-code', agent: 'claude', said: 'Claude was here.', setting: 'CLAUDE_PROGRAM' },
  { client: 'opencode', agent: 'opencode', said: 'opencode was here.', setting: 'OPENCODE_PROGRAM' },
] as const)('the example of $client connects it, and it writes memory as an agent of its own', async ({ client, agent, said, setting }) => {
  const key = /API key +(br-\S+)/.exec(gateway.output())?.[1] ?? ''
  const page = readFileSync(join(checkout, 'examples', client, 'README.md'), 'utf8')
  const script = (/^```sh\n(.*?)^```/ms.exec(page)?.[1] ?? '').replace('br-…', key)
  const home = throwAwayHome()
  homes.push(home)
  const env = { ...quiet, HOME: home.path, BRIGADE: gateway.baseUrl, PATH: `${dirname(programOf(setting))}:${process.env['PATH']}` }
  const { code, stdout, stderr } = await run('sh', ['-e', '-c', script], { cwd: checkout, env })
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('the tool answered with')
  const owner = connectAgent({ baseUrl: gateway.baseUrl, credential: key })
  expect(await owner.memory.read(`agents/${agent}/first.md`)).toMatchObject({ text: said, provenance: { agentName: agent } })
})
