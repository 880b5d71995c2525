/** Runs the commands of docs/guides/workload-tokens.md unchanged. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type OidcIssuer, startOidcIssuer } from './oidc-issuer.ts'

const page = readFileSync(new URL('../../docs/guides/workload-tokens.md', import.meta.url), 'utf8')
const hasTools = process.platform !== 'win32' && ['bash', 'curl', 'jq'].every(name => spawnSync(name, ['--version']).status === 0)

/** Returns the text after `run: |`, without its indentation. */
function workflowScript(): string {
  const [, block = ''] = /run: \|\n((?: {10}.*\n)+)/.exec(page) ?? []
  return block.replaceAll(/^ {10}/gm, '')
}

/** Returns the shell block that contains all of these words. */
function shellBlock(...words: readonly string[]): string {
  const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(match => match[1] ?? '')
  const found = blocks.find(block => words.every(word => block.includes(word)))
  if (found === undefined) throw new Error(`no block with ${words.join(', ')}`)
  return found
}

describe.runIf(hasTools)('the page about tokens of jobs', () => {
  let app: TestApp
  let issuer: OidcIssuer
  let agentId: number
  const folder = mkdtempSync(join(tmpdir(), 'brigade-docs-'))
  beforeAll(async () => {
    issuer = await startOidcIssuer()
    await issuer.addKey('one')
    app = await startApp({ env: { OUTBOUND_ALLOW: issuer.hostPort } })
    agentId = (await app.newAgent('documented')).id
    const cookie = await app.signIn()
    for (const subject of ['repo:acme/app:ref:refs/heads/main', 'system:serviceaccount:agents:triage'])
      await app.call('POST', '/me/agent-trust', { name: 'documented', issuer: issuer.url, subject, agent_id: agentId, key_id: app.keyId }, { cookie })
  })
  afterAll(async () => {
    await app?.stop()
    await issuer?.close()
  })

  const run = async (script: string, env: Record<string, string> = {}): Promise<string> => {
    const here = script.replaceAll('https://gateway.example.com', app.baseUrl).replaceAll('/var/run/secrets/gateway', folder)
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', here], { env: { PATH: process.env['PATH'] ?? '', ...env } })
    return stdout
  }

  test('the workflow step provides a masked token and the address for later steps', async () => {
    const audience = `${app.baseUrl}/orgs/${app.orgId}`
    const token = await issuer.token({ aud: audience })
    let asked = ''
    issuer.answer = (request, response) => {
      if (!request.url?.startsWith('/actions')) return false
      asked = `${request.headers.authorization} ${new URL(request.url, issuer.url).searchParams.get('audience')}`
      response.end(JSON.stringify({ value: token }))
      return true
    }
    const file = join(folder, 'github-env')
    writeFileSync(file, '')
    const out = await run(workflowScript(), {
      GATEWAY: app.baseUrl,
      AUDIENCE: audience,
      GITHUB_ENV: file,
      ACTIONS_ID_TOKEN_REQUEST_URL: `${issuer.url}/actions?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of-the-job',
    })
    issuer.answer = null
    expect(asked).toBe(`Bearer of-the-job ${audience}`)
    const [, made = ''] = /OPENAI_API_KEY=(\S+)/.exec(readFileSync(file, 'utf8')) ?? []
    expect(decodeJwt(made).sub).toBe(`agent:${agentId}`)
    expect(readFileSync(file, 'utf8')).toContain(`OPENAI_BASE_URL=${app.baseUrl}/v1\n`)
    expect(out.trim()).toBe(`::add-mask::${made}`)
  })

  test('the commands of the pod exchange its mounted token, and introspection and revocation work as the page says', async () => {
    writeFileSync(join(folder, 'token'), await issuer.token({ aud: [`${app.baseUrl}/orgs/${app.orgId}`], sub: 'system:serviceaccount:agents:triage' }))
    const { access_token: token } = JSON.parse(await run(shellBlock('subject_token@')))
    expect(decodeJwt(token)).toMatchObject({ sub: `agent:${agentId}`, act: { sub: 'system:serviceaccount:agents:triage' } })
    const env = { BRIGADE_KEY: app.key, token }
    const [introspect = '', revoke = ''] = shellBlock('/oauth/introspect', '/oauth/revoke').trim().split('\n')
    expect(JSON.parse(await run(introspect, env))).toMatchObject({ active: true, agent: { id: agentId } })
    expect(JSON.parse(await run(revoke, env))).toEqual({})
    expect(JSON.parse(await run(introspect, env))).toEqual({ active: false })
  })
})
