import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { startProcess } from '../harness/process.ts'
import { until } from '../harness/until.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Runs a program of dist/ to its end. */
function ended(words: readonly string[], cwd: string, env: Readonly<Record<string, string>>): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, words, { cwd, env: { PATH: process.env['PATH'] ?? '', HOME: cwd, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', text => {
      output += text
    })
  return new Promise(resolve => child.once('close', code => resolve({ code, output })))
}

describe('names that Brigade does not know', { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-names-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('FIRST-04 an unknown name in .env or in the configuration file is named with the nearest known one, at the start and by doctor, without its value', async () => {
    const file = join(folder, '.env')
    const config = join(folder, 'brigade.config.json')
    writeFileSync(config, JSON.stringify({ providers: [{ id: 'mine', base_url: 'http://127.0.0.1:9/v1', api_key_env: 'KEY_OF_MINE' }] }))
    writeFileSync(
      file,
      'GROQ_API_KYE=secret-of-groq\nPROT=1\nWHOLLY_ELSE=2\nLOG_LEVEL=warn\nMASTER_KEY_FILE=/none\nKEY_OF_MINE=3\nOPENAI_BASE_URL=\nNODE_OPTIONS=\nAWS_REGION=x\n',
    )
    const gateway = await startProcess({ ENV_FILE: file, CONFIG_FILE: config, LOG_LEVEL: 'warn', DATA_DIR: join(folder, 'data') }, folder)
    try {
      const said = [
        'GROQ_API_KYE in .env is no setting of Brigade. Did you mean GROQ_API_KEY?',
        'PROT in .env is no setting of Brigade. Did you mean PORT?',
        'WHOLLY_ELSE in .env is no setting of Brigade. See docs/reference/config.md.',
      ]
      for (const sentence of said) await until(() => gateway.output().includes(sentence), sentence)
      const doctor = await ended([join(root, 'dist', 'cli', 'brigade.js'), 'doctor'], folder, {
        DATA_DIR: join(folder, 'data'),
        ENV_FILE: file,
        CONFIG_FILE: config,
      })
      for (const sentence of said) expect(doctor.output).toContain(sentence)
      for (const text of [gateway.output(), doctor.output]) {
        expect(text.match(/is no setting/g)?.length).toBe(3)
        expect(text).not.toContain('secret-of-groq')
      }
      expect(doctor.output).not.toContain('every setting was read')
    } finally {
      await gateway.kill()
    }

    writeFileSync(config, JSON.stringify({ provider: [], models: [{ id: 'x', contextlength: 1 }] }))
    for (const words of [[join(root, 'dist', 'main.js')], [join(root, 'dist', 'cli', 'brigade.js'), 'doctor']]) {
      const { code, output } = await ended(words, folder, { DATA_DIR: join(folder, 'other'), CONFIG_FILE: config, PORT: '0' })
      expect(code).toBe(1)
      expect(output).toContain('Did you mean "providers"?')
      expect(output).toContain('Did you mean "context_length"?')
    }
  })
})
