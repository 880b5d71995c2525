/** The MCP inspector from the command line against a whole gateway, as somebody would use it to look what a server offers. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type Ended, programs, run } from './programs.ts'

let app: TestApp
let agentToken: string
beforeAll(async () => {
  app = await startApp()
  await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
  agentToken = (await app.newAgent('inspected')).token
})
afterAll(() => app.stop())

function inspect(token: string, ...args: string[]): Promise<Ended> {
  const header = `Authorization: Bearer ${token}`
  return run(programs.inspector, ['--cli', `${app.baseUrl}/mcp`, '--transport', 'http', '--header', header, '--format', 'json', ...args])
}

/** The result that it printed. */
function resultOf({ code, stdout, stderr }: Ended): { tools: { name: string }[]; content: { text: string }[]; structuredContent: Record<string, unknown> } {
  expect(code, stdout + stderr).toBe(0)
  const printed = JSON.parse(stdout)
  return printed.result ?? printed
}

const call = (tool: string, args: Record<string, string>): string[] => [
  '--method',
  'tools/call',
  '--tool-name',
  tool,
  ...Object.entries(args).flatMap(([name, value]) => ['--tool-arg', `${name}=${value}`]),
]

describe.each(['legacy', 'modern'])('the inspector of the %s era', era => {
  test.each(['an API key', 'an agent token'])('lists tools, writes memory and reads it with %s in a header', async credential => {
    const token = credential === 'an API key' ? app.key : agentToken
    const { tools } = resultOf(await inspect(token, '--protocol-era', era, '--method', 'tools/list', '--strict'))
    expect(tools.map(tool => tool.name)).toEqual(expect.arrayContaining(['chat', 'memory_read', 'memory_write', 'whoami']))
    const key = `agents/inspected/${era}-${credential.replaceAll(' ', '-')}`
    const written = resultOf(await inspect(token, '--protocol-era', era, ...call('memory_write', { key, content: 'seen by the inspector' })))
    expect(written.structuredContent).toMatchObject({ key })
    const read = resultOf(await inspect(token, '--protocol-era', era, ...call('memory_read', { key })))
    expect(read.structuredContent['content']).toBe('seen by the inspector')
  })

  test('reads a resource and finds the prompts', async () => {
    const who = await inspect(agentToken, '--protocol-era', era, '--method', 'resources/read', '--uri', 'brigade://whoami')
    expect(who.code, who.stderr).toBe(0)
    expect(who.stdout).toContain('inspected')
    const prompts = await inspect(agentToken, '--protocol-era', era, '--method', 'prompts/list')
    expect(prompts.code, prompts.stderr).toBe(0)
    for (const name of ['recall', 'handoff', 'budget_report']) expect(prompts.stdout).toContain(name)
  })
})

test('with an invalid credential it ends with a failure that says so, and finds no login to start', async () => {
  const { code, stdout, stderr } = await inspect(`${app.key.slice(0, -4)}aaaa`, '--method', 'tools/list')
  expect(code, stdout).not.toBe(0)
  expect(stderr + stdout).toMatch(/401|auth/i)
})
