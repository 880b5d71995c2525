import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isStream, type OwnServer, startOwnServer } from '../gateway/byok/own-server.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../harness/app.ts'
import { signatureIn } from '../harness/cloud-servers.ts'
import { startUpstream, type UpstreamServer } from '../harness/upstream-server.ts'
import { builtConsole, type ConsolePage, openPage, program, settled, startBrowser, suiteName } from './browser.ts'

const key = 'gm-0123456789abcdefTAIL'
const accessKeyId = 'AKIAOWNKEYOFTHEORG01'

/** Adds a provider whose server is `gamma`, and a cloud whose address has a place. Neither has a key of the operator. */
const operatorFile = (gamma: UpstreamServer) => (urls: { alpha: string; beta: string; indus: string }) => {
  const file = defaultOperatorFile(urls)
  const cloud = { id: 'runtime', name: 'Runtime', base_url: gamma.url.replace(/\/v1$/, '/aws/{region}/v1'), residency: 'global', models_path: null }
  const route = { provider: 'gamma', upstream_model: 'gamma-large', input_inr_per_mtok: 1000, output_inr_per_mtok: 4000 }
  return {
    providers: [
      ...file.providers,
      { id: 'gamma', name: 'Gamma', base_url: gamma.url, residency: 'global', key_shape: '^gm-' },
      { ...cloud, identity: { kind: 'aws', service: 'bedrock' } },
    ],
    models: [...file.models, { id: 'gamma-chat', kind: 'chat', context_length: 100_000, routes: [route] }],
  }
}

describe.skipIf(program === null)(suiteName('providers, models and routing in the console'), { timeout: 240_000 }, () => {
  let app: TestApp
  let browser: Browser
  let gamma: UpstreamServer
  let own: OwnServer
  let cookie: string
  beforeAll(async () => {
    await builtConsole()
    ;[gamma, own] = await Promise.all([startUpstream(), startOwnServer()])
    const env = { CONSOLE_RPM: '10000', OUTBOUND_ALLOW: `${own.hostPort},${new URL(gamma.url).host},hooks.example:443` }
    app = await startApp({ operatorFile: operatorFile(gamma), env })
    cookie = await app.signIn()
    browser = await startBrowser()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await app?.stop()
    await Promise.all([gamma?.close(), own?.close()])
  })

  const read = async (path: string) => (await app.call('GET', path, undefined, { cookie })).json
  const chat = (model: string, more: object = {}) =>
    app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 5, ...more })
  const at = async (opened: ConsolePage, path: string): Promise<void> => {
    await opened.page.goto(`${app.baseUrl}/console${path}`)
    await settled(opened.page)
  }
  const said = (page: Page, text: string | RegExp) => page.getByText(text).filter({ visible: true }).first().waitFor()
  /** Chooses an option of a field that searches, with the keyboard. */
  const choose = async (page: Page, label: string, value: string): Promise<void> => {
    await page.getByRole('combobox', { name: label }).fill(value)
    await page.getByRole('option', { name: value }).first().waitFor()
    await page.keyboard.press('Enter')
  }
  const stepsOn = (page: Page): Promise<string[]> => page.getByRole('list', { name: 'Steps' }).locator('li .step-what > code').allTextContents()

  /** A key that its provider refuses and then accepts, its test, its order, and credentials of a cloud with the values of its address. */
  const driveProviders = async (opened: ConsolePage): Promise<void> => {
    const { page } = opened
    await at(opened, '/providers')
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Provider', { exact: true }).selectOption('gamma')
    await dialog.getByLabel('Key', { exact: true }).fill('gm-wrong-key')
    gamma.script(request =>
      request.headers.authorization === `Bearer ${key}` ? { body: { data: [{ id: 'gamma-large' }, { id: 'gamma-small' }] } } : { status: 401, body: {} },
    )
    await dialog.getByRole('button', { name: 'Test and save' }).click()
    await dialog.getByRole('alert').waitFor()
    expect(await dialog.getByLabel('Key', { exact: true }).inputValue(), 'what was typed stays').toBe('gm-wrong-key')
    expect((await read('/me/byok')).keys).toEqual([])
    expect(await opened.axe()).toEqual([])
    await dialog.getByLabel('Key', { exact: true }).fill(key)
    await page.keyboard.press('Enter')
    await said(page, 'The Gamma key works, and reaches 2 models.')
    const peek = page.getByRole('complementary', { name: 'Gamma' })
    await peek.getByText('gm-0…TAIL').first().waitFor()
    expect(await page.content(), 'the key is never shown again').not.toContain(key)
    await peek.getByText('Models found').last().click()
    await peek.getByText('gamma/gamma-small').waitFor()
    const before = gamma.requests.length
    await peek.getByRole('button', { name: 'Test now' }).click()
    await said(page, 'The provider accepted the key.')
    expect(gamma.requests.length, 'the test asks the provider').toBeGreaterThan(before)
    gamma.script(() => ({ status: 401, body: {} }))
    await peek.getByRole('button', { name: 'Test now' }).click()
    await said(page, 'The provider refused the key.')
    await peek.getByLabel('Use it first').click()
    await said(page, 'Calls use your Gamma key first.')
    expect((await read('/me/byok')).keys).toMatchObject([{ provider: 'gamma', always_use: true, models: 2 }])
    expect(await opened.axe()).toEqual([])
    gamma.script(() => ({}))
    const answered = await chat('gamma-chat')
    expect([answered.status, answered.headers.get('x-br-provider')]).toEqual([200, 'gamma'])
    expect(gamma.requests.at(-1)?.headers.authorization).toBe(`Bearer ${key}`)
    await driveCloud(opened)
  }

  const driveCloud = async (opened: ConsolePage): Promise<void> => {
    const { page } = opened
    await at(opened, '/providers?add=runtime')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('An access key of AWS').click()
    await dialog.getByLabel('Region').fill('ap-south-1')
    await dialog.getByLabel('Access key id').fill(accessKeyId)
    await dialog.getByLabel('Secret access key').fill('own-secret-of-the-organisation')
    await dialog.getByLabel('Deployments or models').fill('own-model')
    expect(await opened.axe()).toEqual([])
    await dialog.getByRole('button', { name: 'Test and save' }).click()
    const peek = page.getByRole('complementary', { name: 'Runtime' })
    await peek.getByText('ap-south-1').waitFor()
    expect((await read('/me/byok')).keys).toContainEqual(expect.objectContaining({ provider: 'runtime', values: { region: 'ap-south-1' } }))
    expect((await chat('runtime/own-model')).status).toBe(200)
    const sent = gamma.requests.at(-1)
    expect(sent?.path).toBe('/aws/ap-south-1/v1/chat/completions')
    expect(sent && signatureIn(sent)).toMatchObject({ keyId: accessKeyId, region: 'ap-south-1', service: 'bedrock' })
    await peek.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog').getByLabel('Type runtime to confirm').fill('runtime')
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await said(page, 'Your Runtime key is removed.')
    expect((await read('/me/byok')).keys).toMatchObject([{ provider: 'gamma' }])
  }

  /** A server that fails its test, and then passes it, is registered, tested again and changed. */
  const driveServers = async (opened: ConsolePage): Promise<void> => {
    const { page } = opened
    await at(opened, '/servers')
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill('Pune cluster')
    await choose(page, 'Serves the model', 'test-model')
    await dialog.getByLabel('Address').fill(own.url)
    await dialog.getByLabel('Its own id for the model').fill('own-model')
    await dialog.getByLabel('Key', { exact: true }).fill('own-server-key-0123456789-TAIL')
    own.misbehave(request => (isStream(request) ? { status: 500, body: {} } : null))
    await dialog.getByRole('button', { name: 'Test', exact: true }).click()
    await dialog.getByText('The server failed a required check. Nothing was saved.').waitFor()
    await dialog.getByText('Failed: Streams an answer').waitFor()
    await dialog.getByRole('button', { name: 'Test and register' }).click()
    await dialog.getByRole('alert').waitFor()
    expect(await dialog.getByLabel('Address').inputValue(), 'what was typed stays').toBe(own.url)
    expect((await read('/me/endpoints')).endpoints).toEqual([])
    own.behave('own-server-key-0123456789-TAIL')
    await dialog.getByRole('button', { name: 'Test', exact: true }).click()
    await dialog.getByText('The server passed. Nothing was saved.').waitFor()
    expect(await opened.axe()).toEqual([])
    await dialog.getByRole('button', { name: 'Test and register' }).click()
    const peek = page.getByRole('complementary', { name: 'Pune cluster' })
    await peek.getByText('own-…TAIL').waitFor()
    expect(await peek.getByRole('listitem').count(), 'each check has its line').toBe(6)
    await peek.getByRole('button', { name: 'Test again' }).click()
    await said(page, 'Pune cluster passed the test.')
    await peek.getByRole('button', { name: 'Change' }).click()
    const patch = page.waitForRequest(request => request.method() === 'PATCH')
    await dialog.getByLabel('Name', { exact: true }).fill('Pune rack')
    await dialog.getByRole('button', { name: 'Test and save' }).click()
    expect((await patch).postDataJSON(), 'only what was touched is sent').toEqual({ name: 'Pune rack' })
    await said(page, 'The server is changed.')
    expect((await read('/me/endpoints')).endpoints).toMatchObject([{ name: 'Pune rack', slug: 'pune-cluster', key_mask: 'own-…TAIL' }])
  }

  /** A chain that is sorted by drag and by keyboard, with a preview of the draft, a refusal that keeps it, and calls that follow it. */
  const driveChain = async (opened: ConsolePage): Promise<void> => {
    const { page } = opened
    await at(opened, '/routing')
    await page.keyboard.press('n')
    await choose(page, 'Model', 'test-model')
    await page.keyboard.press('Tab')
    await page.getByRole('button', { name: 'Choose the steps' }).press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Chain of test-model' }).waitFor()
    for (const model of ['alpha-only', 'global-only']) await choose(page, 'Add a step', model)
    await page.getByRole('heading', { level: 1 }).click()
    expect(await stepsOn(page)).toEqual(['test-model', 'alpha-only', 'global-only'])

    // By drag: the third step goes above the first.
    const handle = (model: string) => page.getByRole('button', { name: new RegExp(`^Move ${model}, step`) })
    const [from, to] = [await handle('global-only').boundingBox(), await handle('test-model').boundingBox()]
    if (from === null || to === null) throw new Error('the handles have no place')
    await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2)
    await page.mouse.down()
    await page.mouse.move(from.x + from.width / 2, from.y - 40, { steps: 4 })
    await page.mouse.move(to.x + to.width / 2, to.y + 2, { steps: 4 })
    expect(await stepsOn(page), 'the list changes when the pointer is released').toEqual(['test-model', 'alpha-only', 'global-only'])
    await page.mouse.up()
    expect(await stepsOn(page)).toEqual(['global-only', 'test-model', 'alpha-only'])

    // By keyboard: the focus stays on the handle, and a status line says the place.
    await handle('test-model').focus()
    await page.keyboard.press('ArrowDown')
    expect(await stepsOn(page)).toEqual(['global-only', 'alpha-only', 'test-model'])
    await page.getByText('test-model is step 3 of 3 now.').waitFor({ state: 'attached' })
    await page.keyboard.press('Home')
    expect(await stepsOn(page)).toEqual(['test-model', 'global-only', 'alpha-only'])
    expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('Move test-model, step 1 of 3')
    await page.getByRole('button', { name: 'Move alpha-only up' }).click()
    expect(await stepsOn(page)).toEqual(['test-model', 'alpha-only', 'global-only'])

    await page.getByLabel('Provider of test-model').selectOption('byoe:pune-cluster')
    await said(page, 'The steps above decide, as they are now.')
    await settled(page)
    const dialed = page.getByRole('list', { name: 'Dialed in this order' }).getByRole('listitem')
    await expect.poll(() => dialed.first().textContent()).toContain('byoe:pune-cluster/test-model')
    expect((await read('/me/routing')).chains, 'a preview saves nothing').toEqual([])
    expect(await opened.axe()).toEqual([])
    await saveChain(opened)
  }

  const saveChain = async ({ page }: ConsolePage): Promise<void> => {
    // The same step twice is refused, and the draft stays.
    await choose(page, 'Add a step', 'alpha-only')
    await page.getByRole('heading', { level: 1 }).click()
    await page.getByRole('button', { name: 'Save the chain' }).click()
    await page.locator('.inline-error').waitFor()
    expect(await stepsOn(page)).toEqual(['test-model', 'alpha-only', 'global-only', 'alpha-only'])
    await page.getByRole('button', { name: 'Remove alpha-only' }).last().click()
    await page.getByRole('button', { name: 'Save the chain' }).click()
    await said(page, 'Calls of test-model follow the chain, everywhere within a minute.')
    const steps = [{ model: 'test-model', provider: 'byoe:pune-cluster' }, { model: 'alpha-only' }, { model: 'global-only' }]
    expect((await read('/me/routing')).chains).toEqual([{ model: 'test-model', steps }])
    await said(page, 'The saved chain of the organisation decides.')
    own.behave('own-server-key-0123456789-TAIL')
    expect((await chat('test-model')).headers.get('x-br-provider')).toBe('byoe:pune-cluster')
    own.misbehave(() => ({ status: 500, body: {} }))
    expect((await chat('test-model')).headers.get('x-br-provider'), 'the next step answers').toBe('alpha')
    own.behave('own-server-key-0123456789-TAIL')
  }

  /** The preview of a call says which routes and why, and models say whether they can be called. */
  const drivePreviewAndModels = async (opened: ConsolePage): Promise<void> => {
    const { page } = opened
    await at(opened, '/routing?tab=preview&model=test-embed')
    const dialed = page.getByRole('list', { name: 'Dialed in this order' })
    await dialed.getByText('alpha/test-embed').waitFor()
    await page.getByLabel('Place').selectOption({ label: 'Only India' })
    const not = page.getByRole('list', { name: 'Not dialed' })
    await not.getByText('not proven to be in India').waitFor()
    await settled(page)
    expect(await dialed.getByRole('listitem').allTextContents()).toEqual([expect.stringContaining('indus/test-embed')])
    await at(opened, '/routing?tab=preview&model=byok-model')
    await page.getByText('A call like this would be refused with the same error.').waitFor()
    expect(await opened.axe()).toEqual([])
    opened.faults.splice(0)

    await at(opened, '/models?q=chat')
    await page.getByRole('rowheader', { name: /gamma-chat/ }).click()
    const peek = page.getByRole('complementary', { name: 'gamma-chat' })
    await peek.getByText('A call reaches it on the key of your organisation.').waitFor()
    await peek.getByText('₹4,000.00').waitFor()
    await page.keyboard.press('Escape')
    await at(opened, '/models?q=byok-model&model=byok-model')
    await page.getByRole('complementary').getByText('Needs a key').first().waitFor()
    await at(opened, '/models?kind=virtual&model=auto:sovereign')
    await page.getByRole('complementary').getByText('indus/test-model').first().waitFor()
    await settled(page)
    expect(await opened.axe()).toEqual([])
  }

  /** A collection: made, sorted, its versions, health, an alert with a secret, published, imported and deleted. */
  const driveCollections = async (opened: ConsolePage): Promise<void> => {
    const { page } = opened
    await at(opened, '/collections')
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill('Cheap and steady')
    await choose(page, 'For calls of', 'same-id')
    await choose(page, 'Add a step', 'mute-model')
    expect(await opened.axe()).toEqual([])
    await dialog.getByRole('button', { name: 'Make the collection' }).click()
    await page.getByRole('heading', { level: 1, name: 'Cheap and steady' }).waitFor()
    await settled(page)
    await page.getByRole('button', { name: /^Move mute-model, step/ }).focus()
    await page.keyboard.press('ArrowUp')
    await page.getByRole('textbox', { name: 'Readme' }).fill('# Why\n\n<img src=x> The quiet one first.')
    await page.getByRole('button', { name: 'Save a new version' }).click()
    await said(page, 'Version 2 is saved.')
    const [made] = (await read('/me/collections')).collections
    expect(made).toMatchObject({ version: 2, steps: [{ model: 'mute-model' }, { model: 'same-id' }] })
    expect(await page.locator('main img').count(), 'HTML of a readme is text').toBe(0)

    await page.getByRole('tab', { name: 'Versions' }).click()
    await page.getByRole('button', { name: 'Compare version 1' }).click()
    await page.getByRole('group', { name: 'Comparison' }).waitFor()
    expect(await opened.axe()).toEqual([])
    await page.getByRole('button', { name: 'Use this version again' }).click()
    await said(page, 'It is version 3 now.')
    await page.getByRole('tab', { name: 'Health' }).click()
    await page.getByRole('button', { name: 'Check now' }).click()
    await said(page, 'Every step was called.')
    await page.getByRole('tab', { name: 'Alerts' }).click()
    await page.getByLabel('Notify by').selectOption('webhook')
    await page.getByLabel('To', { exact: true }).fill('https://hooks.example/collections')
    await page.getByRole('button', { name: 'Add an alert' }).click()
    await dialog.getByText('The secret of the new webhook').waitFor()
    await page.keyboard.press('Escape')
    const secret = (await dialog.locator('.secret-text').textContent()) ?? ''
    expect(secret.length).toBeGreaterThan(10)
    await dialog.getByRole('button', { name: 'I have stored it' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await page.content(), 'a secret is shown once').not.toContain(secret)
    await page.getByText('5 % of the canaries fail').waitFor()
    await shareAndImport(opened, made)
  }

  const shareAndImport = async (opened: ConsolePage, made: { id: number; slug: string }): Promise<void> => {
    const { page } = opened
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'More acts' }).click()
    await page.getByRole('menuitem', { name: 'Publish' }).click()
    await dialog.getByRole('button', { name: 'Publish' }).click()
    await said(page, 'The collection is public.')
    await page.getByRole('button', { name: 'Use as routing' }).click()
    await dialog.getByText('same-id has no chain now, so nothing is replaced.').waitFor()
    await dialog.getByRole('button', { name: 'Use as routing' }).click()
    await said(page, 'Calls of same-id follow the collection.')
    expect((await read('/me/routing/same-id')).steps).toEqual([{ model: 'same-id' }, { model: 'mute-model' }])
    await at(opened, `/collections?tab=public&slug=${made.slug}`)
    const peek = page.getByRole('complementary', { name: 'Cheap and steady' })
    await peek.getByRole('button', { name: 'Star' }).click()
    await peek.getByText('1 star', { exact: true }).waitFor()
    await at(opened, `/collections/${made.id}`)
    await page.getByRole('button', { name: 'More acts' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await dialog.getByLabel(`Type ${made.slug} to confirm`).fill(made.slug)
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.waitForURL(/\/console\/collections$/)
    expect((await read('/me/collections')).collections).toEqual([])
  }

  /** A member reads everything, is offered no act that would be refused, and reads whom to ask. An admin asks an owner for a key. */
  const checkRoles = async (): Promise<void> => {
    const { cookie: member } = await app.newMember('member')
    const opened = await openPage(browser, app, '/console/providers?provider=gamma', { cookie: member })
    const { page } = opened
    await page.getByText('Only owners change keys. Ask ').waitFor()
    for (const path of ['/providers?provider=gamma', '/routing', '/routing/chain?model=test-model', '/servers?server=1', '/collections']) {
      await at(opened, path)
      await page
        .getByText(/Ask (an owner|owner)/)
        .first()
        .waitFor()
      const acts = page.locator('main, aside').getByRole('button', { name: /^(Add a key|New|Test|Replace|Remove|Register|Save|Change|Use as)/ })
      expect(await acts.count(), path).toBe(0)
      expect(await opened.axe(), path).toEqual([])
    }
    const { cookie: admin } = await app.newMember('admin')
    const second = await openPage(browser, app, '/console/providers?provider=gamma', { cookie: admin })
    await second.page.getByText('Only owners change keys. Ask owner').waitFor()
    expect(await second.page.getByRole('button', { name: /Add a key|Test now/ }).count()).toBe(0)
    expect([opened.faults, second.faults]).toEqual([[], []])
    await Promise.all([opened.context.close(), second.context.close()])
  }

  test('CONS-11 providers, own servers, chains, models and collections are saved, tested and previewed; a chain is sorted by drag and by keyboard', async () => {
    // The browser reports a refused request as an error of the console.
    const opened = await openPage(browser, app, '/console/providers', { cookie, expected: [/status of (400|404|502)/] })
    await driveProviders(opened)
    await driveServers(opened)
    await driveChain(opened)
    await drivePreviewAndModels(opened)
    await driveCollections(opened)
    await checkRoles()
    expect(opened.faults).toEqual([])
    await opened.context.close()
  })
})
