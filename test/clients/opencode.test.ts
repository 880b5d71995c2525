import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { programOf, run, throwAwayHome } from './programs.ts'

let app: TestApp
let home: ReturnType<typeof throwAwayHome>
beforeAll(async () => {
  app = await startApp({ env: { SANDBOX: 'on' } })
  home = throwAwayHome()
})
afterAll(async () => {
  home.remove()
  await app.stop()
})

test('opencode completes a turn with a tool call through chat completions and prints the answer', async () => {
  const provider = {
    npm: '@ai-sdk/openai-compatible',
    name: 'Brigade',
    options: { baseURL: `${app.baseUrl}/v1`, apiKey: '{env:BRIGADE_KEY}' },
    models: { 'sandbox-chat': { name: 'Sandbox', tool_call: true } },
  }
  writeFileSync(join(home.work, 'opencode.json'), JSON.stringify({ $schema: 'https://opencode.ai/config.json', provider: { brigade: provider } }))
  const env = { HOME: home.path, BRIGADE_KEY: app.key, OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' }
  const command = { command: 'echo made-by-$((2000+26))', description: 'prints a word' }
  const { code, stdout, stderr } = await run(programOf('OPENCODE_PROGRAM'), ['run', '-m', 'brigade/sandbox-chat'], {
    cwd: home.work,
    env,
    stdin: `call bash ${JSON.stringify(command)}`,
  })
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('the tool answered with')
  expect(stdout + stderr).toContain('made-by-2026')
})
