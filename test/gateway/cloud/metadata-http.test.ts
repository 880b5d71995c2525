import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { startTokenServer, type TokenServer } from '../../harness/cloud-servers.ts'
import { until } from '../../harness/until.ts'
import { startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

/** Identities that the metadata service of a machine gives, and a metadata service that does not answer. */
describe('metadata services', () => {
  const environment = { ...process.env }
  let clock: MovableClock
  let metadata: TokenServer
  let cloud: UpstreamServer
  let app: TestApp

  beforeAll(async () => {
    clock = movableClock()
    ;[metadata, cloud] = await Promise.all([startTokenServer(), startUpstream()])
    for (const name of Object.keys(process.env)) if (/^(AWS_|GOOGLE_|GCE_)/.test(name)) delete process.env[name]
    Object.assign(process.env, {
      AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata.url,
      AWS_CONFIG_FILE: '/nonexistent/config',
      AWS_SHARED_CREDENTIALS_FILE: '/nonexistent/credentials',
      GCE_METADATA_HOST: new URL(metadata.url).host,
      METADATA_SERVER_DETECTION: 'assume-present',
      HOME: '/nonexistent',
    })
    const row = (id: string, more: object) => ({ id, base_url: cloud.url, residency: 'global', use_identity: true, models_path: null, ...more })
    const price = { input_inr_per_mtok: 10, output_inr_per_mtok: 40 }
    const routes = (provider: string) => [
      { provider, upstream_model: provider, rank: 1, ...price },
      { provider: 'alpha', upstream_model: 'alpha', input_inr_per_mtok: 20, output_inr_per_mtok: 80 },
    ]
    app = await startApp({
      clock,
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        return {
          providers: [
            ...file.providers,
            row('on-aws', { identity: { kind: 'aws', service: 'bedrock' }, values: { region: 'eu-west-1' } }),
            row('on-google', { auth: 'identity', identity: { kind: 'google' } }),
            row('on-azure', { auth: 'identity', identity: { kind: 'entra', scope: 'https://ai.azure.com/.default' } }),
          ],
          models: [...file.models, ...['on-aws', 'on-google', 'on-azure'].map(id => ({ id: `${id}-chat`, context_length: 100_000, routes: routes(id) }))],
        }
      },
      env: { AZURE_POD_IDENTITY_AUTHORITY_HOST: metadata.url },
    })
  })
  afterAll(async () => {
    await app.stop()
    await Promise.all([metadata.close(), cloud.close()])
    for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name]
    Object.assign(process.env, environment)
  })
  afterEach(() => cloud.reset())

  const models = ['on-aws-chat', 'on-google-chat', 'on-azure-chat']
  const chatOnce = (model: string) => app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }] })

  test('CLOUD-02 while the metadata service hangs, the gateway starts, other providers serve, calls wait once, and the doctor says it', async () => {
    // A start asks for no credentials.
    expect(metadata.asked).toEqual([])
    metadata.hangs = true
    const served = await Promise.all(models.map(chatOnce))
    expect(served.map(({ status, headers }) => [status, headers.get('x-br-provider')])).toEqual(models.map(() => [200, 'alpha']))
    expect(cloud.requests).toEqual([])
    // The failure is remembered, so the next calls ask nobody.
    const asked = (): number => metadata.asked.filter(({ path }) => path === '/metadata/identity/oauth2/token').length
    expect(asked()).toBe(1)
    const again = await Promise.all(models.map(chatOnce))
    expect(again.map(({ headers }) => headers.get('x-br-provider'))).toEqual(['alpha', 'alpha', 'alpha'])
    expect(asked()).toBe(1)

    const said = Object.fromEntries((await app.gateway.app.doctor()).map(({ what, state, detail }) => [what, `${state}: ${detail}`]))
    expect(said['identity for on-google']).toMatch(
      /^wrong: .*(did not come within|no identity at Google).* Calls to on-google fail or go to other providers\.$/,
    )
    expect(said['identity for on-azure']).toMatch(/^wrong: .*(did not come within|no answer within)/)
    expect(said['identity for on-aws']).toMatch(/^wrong: this gateway has no AWS identity/)
    expect(app.logLines.join('\n')).not.toContain('unhandled')
  }, 30_000)

  test('CLOUD-02 a managed identity of Azure and the service account of a machine at Google serve when the metadata service answers again', async () => {
    metadata.hangs = false
    metadata.asked.length = 0
    clock.advance(10 * 60_000)
    for (const model of ['on-google-chat', 'on-azure-chat']) {
      // The last request of the doctor may still hang, and its failure is remembered for a while.
      await until(async () => {
        clock.advance(2 * 60_000)
        const { status, headers } = await chatOnce(model)
        expect(status).toBe(200)
        return headers.get('x-br-provider') === model.replace('-chat', '')
      }, `${model} is served by its cloud`)
    }
    const tokens = cloud.requests.map(({ headers }) => String(headers.authorization).replace('Bearer ', ''))
    expect(tokens.every(token => metadata.valid.has(token))).toBe(true)
    const ofAzure = metadata.asked.find(({ path }) => path === '/metadata/identity/oauth2/token')
    expect(ofAzure?.headers['metadata']).toBe('true')
    expect(Object.fromEntries(ofAzure?.fields ?? [])).toEqual({ 'api-version': '2018-02-01', resource: 'https://ai.azure.com' })
    const ofGoogle = metadata.asked.find(({ path }) => path.endsWith('/service-accounts/default/token'))
    expect(ofGoogle?.headers['metadata-flavor']).toBe('Google')
  })
})
