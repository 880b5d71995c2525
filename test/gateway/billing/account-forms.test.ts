/**
 * The billing data that people enter: address, threshold, profile and tax numbers. The tests use two real gateways. On one of them, business invoices
 * are switched on.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestMember, type TestReply } from '../../harness/app.ts'

let app: TestApp
let owner: string
let admin: TestMember
let member: TestMember

beforeAll(async () => {
  app = await startApp()
  owner = await app.signIn()
  admin = await app.newMember('admin')
  member = await app.newMember('member')
})
afterAll(() => app.stop())

const get = (path: string, cookie = owner): Promise<TestReply> => app.call('GET', path, undefined, { cookie })
const post = (path: string, body: unknown, cookie = owner): Promise<TestReply> =>
  app.call('POST', path, body, { cookie, headers: { origin: new URL(app.baseUrl).origin } })

const good = { name: 'Asha Rao', line1: '12, MG Road', city: 'Bengaluru', state: 'Karnataka', pincode: '560001' }
const kept = { ...good, line2: null, state_code: '29', country: 'IN' }

describe('the billing address', () => {
  test('BILL-02 SHAPE-11 an owner sets the billing address and every member reads it; an invalid address is refused with every invalid field', async () => {
    expect((await get('/me/billing')).json.address).toBeNull()
    const set = await post('/me/billing/address', good)
    expect([set.status, set.json]).toEqual([200, { ok: true, ...kept }])
    expect((await get('/me/billing', member.cookie)).json.address).toEqual(kept)

    const wrong: [string, unknown][] = [
      ...['name', 'line1', 'city', 'state', 'pincode'].flatMap(field =>
        ['', '   ', null, undefined, 7, [], {}, 'x'.repeat(301)].map((value): [string, unknown] => [field, value]),
      ),
      ...['name', 'line1', 'line2', 'city'].flatMap(field =>
        ['a\nb', 'a\u0000b', 'a\u202eb', 'a\u2028b', '\ufeffa', '---', 'a\u007fb'].map((value): [string, unknown] => [field, value]),
      ),
      ...[7, {}, true, 'x'.repeat(151)].map((value): [string, unknown] => ['line2', value]),
      ...['Atlantis', '40', '97', '00', 'Karnataka\nGoa', 'K'].map((value): [string, unknown] => ['state', value]),
      ...['56000', '5600011', '060001', 'abcdef', '560 0 01', '5６0001', 560001, '400001', '110001'].map((value): [string, unknown] => ['pincode', value]),
      ...['US', '', null, 7, 'INDIA, or so'].map((value): [string, unknown] => ['country', value]),
    ]
    for (const [field, value] of wrong) {
      const refused = await post('/me/billing/address', { ...good, [field]: value })
      expect([field, value, refused.status, refused.json.error.code, Object.keys(refused.json.fields)]).toEqual([field, value, 400, 'bad_address', [field]])
      expect(refused.json.error.message).toContain(field)
    }
    const empty = await post('/me/billing/address', {})
    expect(Object.keys(empty.json.fields)).toEqual(['name', 'line1', 'city', 'state', 'pincode'])
    for (const field of Object.keys(empty.json.fields)) expect(empty.json.error.message).toContain(field)
    expect((await post('/me/billing/address', [])).json.error.code).toBe('bad_request')
    expect((await get('/me/billing')).json.address).toEqual(kept)
  })

  test('texts and states are normalised, and a state to which the PIN code cannot belong is refused', async () => {
    const forms: [object, object][] = [
      [{ ...good, name: '  Asha   Rao ', line2: ' ', state: ' karnataka ', pincode: ' 560 001 ', country: 'in' }, kept],
      [{ ...good, state: 'KA' }, kept],
      [{ ...good, state: '29', country: 'IN', extra: 'ignored' }, kept],
      [
        { ...good, name: 'ആശ\u200d റാവു', line2: 'Flat 3' },
        { ...kept, name: 'ആശ\u200d റാവു', line2: 'Flat 3' },
      ],
      [
        { ...good, state: 'NCT of Delhi', city: 'Delhi', pincode: '110001' },
        { ...kept, state: 'Delhi', state_code: '07', city: 'Delhi', pincode: '110001' },
      ],
      [
        { ...good, state: 'Orissa', pincode: '751001' },
        { ...kept, state: 'Odisha', state_code: '21', pincode: '751001' },
      ],
      [
        { ...good, state: 'J & K', pincode: '190001' },
        { ...kept, state: 'Jammu and Kashmir', state_code: '01', pincode: '190001' },
      ],
      [
        { ...good, state: 'Jammu & Kashmir', pincode: '190001' },
        { ...kept, state: 'Jammu and Kashmir', state_code: '01', pincode: '190001' },
      ],
      [
        { ...good, state: 'Daman & Diu', pincode: '396210' },
        { ...kept, state: 'Dadra and Nagar Haveli and Daman and Diu', state_code: '26', pincode: '396210' },
      ],
      // The office of this PIN code serves Yanam (Puducherry) and places in Andhra Pradesh, so both states are right.
      [
        { ...good, state: 'Puducherry', pincode: '533464' },
        { ...kept, state: 'Puducherry', state_code: '34', pincode: '533464' },
      ],
      // The table does not have the first code, but its first digits belong to Karnataka. The second code is one of the army, whose digits belong to
      // no state.
      [
        { ...good, pincode: '560999' },
        { ...kept, pincode: '560999' },
      ],
      [
        { ...good, pincode: '900056' },
        { ...kept, pincode: '900056' },
      ],
    ]
    for (const [sent, expected] of forms) {
      const reply = await post('/me/billing/address', sent)
      expect(reply.status === 200 ? reply.json : {}).toEqual({ ok: true, ...expected })
    }
    const elsewhere = await post('/me/billing/address', { ...good, state: 'Kerala', pincode: '560999' })
    expect([elsewhere.status, elsewhere.json.fields]).toEqual([400, { pincode: expect.stringContaining('Karnataka') }])
  })
})

describe('PIN codes', () => {
  test('BILL-03 SHAPE-12 a PIN code gives city and state; a malformed code and an unknown code have different errors', async () => {
    const places: [string, string, string][] = [
      ['560001', 'Bengaluru', 'Karnataka'],
      ['110001', 'New Delhi', 'Delhi'],
      ['400001', 'Mumbai', 'Maharashtra'],
      ['600001', 'Chennai', 'Tamil Nadu'],
      ['700001', 'Kolkata', 'West Bengal'],
      ['500001', 'Hyderabad', 'Telangana'],
      ['682555', 'Lakshadweep', 'Lakshadweep'],
      ['194101', 'Leh', 'Ladakh'],
      ['737101', 'Gangtok', 'Sikkim'],
      ['533464', 'Kakinada', 'Andhra Pradesh'],
    ]
    for (const [pincode, city, state] of places) {
      const reply = await get(`/me/billing/pincode/${pincode}`, member.cookie)
      expect(reply.json).toEqual({ pincode, city, state, state_code: expect.stringMatching(/^\d\d$/) })
    }
    for (const pin of ['56000', '5600011', '060001', 'abcdef', '56000a', '%F0%9F%98%80', '-60001', '5600%2001', '560001.0'])
      expect([pin, (await get(`/me/billing/pincode/${pin}`)).json.error.code]).toEqual([pin, 'bad_request'])
    for (const pin of ['999999', '560999', '290001', '900056']) {
      const reply = await get(`/me/billing/pincode/${pin}`)
      expect([pin, reply.status, reply.json.error.code]).toEqual([pin, 404, 'not_found'])
    }
  })
})

describe('settings', () => {
  test('BILL-14 SHAPE-16 the low-balance threshold is stored, changed and cleared; an invalid amount is refused', async () => {
    const threshold = async (cookie?: string) => (await get('/me/billing', cookie)).json.low_balance_threshold_inr
    expect(await threshold()).toBeNull()
    for (const inr of [500, 0.01, 99.99, 10_000_000]) {
      const set = await post('/me/billing/settings', { low_balance_threshold_inr: inr })
      expect([set.status, set.json]).toEqual([200, { ok: true, low_balance_threshold_inr: inr }])
      expect(await threshold(member.cookie)).toBe(inr)
    }
    for (const inr of [0, -1, 0.001, 1.005, 10_000_001, '500', true, [], {}, undefined]) {
      const refused = await post('/me/billing/settings', { low_balance_threshold_inr: inr })
      expect([inr, refused.status, refused.json.error.code]).toEqual([inr, 400, 'bad_request'])
      expect(refused.json.error.message).toContain('low_balance_threshold_inr')
    }
    expect(await threshold()).toBe(10_000_000)
    const nothing = await post('/me/billing/settings', {})
    expect([nothing.status, nothing.json.error.message]).toEqual([400, 'Field "low_balance_threshold_inr": is missing; expected number.'])
    const cleared = await post('/me/billing/settings', { low_balance_threshold_inr: null })
    expect([cleared.status, cleared.json]).toEqual([200, { ok: true, low_balance_threshold_inr: null }])
    expect(await threshold()).toBeNull()
  })
})

const iocl = '29AAACI1681G1ZL'

describe('the billing profile', () => {
  test('BILL-18 every member reads the billing profile and owners set it; a GSTIN is refused while business invoices are off, and checked and stored while they are on', async () => {
    const unset = { legal_name: null, billing_email: null, gstin: null, pan: null, state: null, state_code: null, business_invoices: false }
    const elsewhere = await app.otherOrg('Elsewhere')
    const foreign = await app.signIn(elsewhere.userId, elsewhere.orgId)
    expect((await get('/me/billing/profile', foreign)).json).toEqual(unset)

    const set = await post('/me/billing/profile', { legal_name: ' Rao  Textiles ', billing_email: ' bills@rao.test ' }, foreign)
    expect([set.status, set.json]).toEqual([200, { ok: true, ...unset, legal_name: 'Rao Textiles', billing_email: 'bills@rao.test' }])
    await post('/me/billing/address', good, foreign)
    const named = { ...unset, legal_name: 'Rao Textiles', billing_email: 'bills@rao.test', state: 'Karnataka', state_code: '29' }
    expect((await get('/me/billing/profile', foreign)).json).toEqual(named)

    const gated = await post('/me/billing/profile', { gstin: iocl, legal_name: 'Another' }, foreign)
    expect([gated.status, gated.json.error.code]).toEqual([400, 'unavailable'])
    expect((await post('/me/billing/profile', { gstin: null }, foreign)).json).toEqual({ ok: true, ...named })
    expect((await post('/me/billing/profile', {}, foreign)).json).toEqual({ ok: true, ...named })
    for (const body of [{ legal_name: '' }, { legal_name: 'a\nb' }, { legal_name: 'x'.repeat(151) }, { legal_name: 7 }, { gstin: 7 }, { billing_email: [] }])
      expect([body, (await post('/me/billing/profile', body, foreign)).json.error.code]).toEqual([body, 'bad_request'])
    for (const billing_email of ['', 'rao', 'a@b.test, c@d.test', 'Rao <a@b.test>', 'a@b.test\nbcc: c@d.test'])
      expect([billing_email, (await post('/me/billing/profile', { billing_email }, foreign)).json.error.code]).toEqual([billing_email, 'bad_email'])
    expect((await get('/me/billing/profile', foreign)).json).toEqual(named)
    expect((await post('/me/billing/profile', { legal_name: null, billing_email: null }, foreign)).json).toEqual({
      ok: true,
      ...unset,
      state: 'Karnataka',
      state_code: '29',
    })

    const open = await startApp({ env: { GST_BUSINESS_INVOICES: 'on' } })
    try {
      const cookie = await open.signIn()
      const send = (body: unknown) => open.call('POST', '/me/billing/profile', body, { cookie, headers: { origin: new URL(open.baseUrl).origin } })
      const business = await send({ gstin: ` ${iocl.toLowerCase()} `, legal_name: 'Rao Textiles' })
      const full = { ...unset, legal_name: 'Rao Textiles', gstin: iocl, pan: 'AAACI1681G', state: 'Karnataka', state_code: '29', business_invoices: true }
      expect([business.status, business.json]).toEqual([200, { ok: true, ...full }])
      for (const gstin of ['29AAACI1681G1ZM', '99AAACI1681G1ZL', 'x', ''])
        expect((await send({ gstin })).json.error).toMatchObject({ code: 'bad_request', message: expect.stringContaining('gstin') })
      expect((await open.call('GET', '/me/billing/profile', undefined, { cookie })).json).toEqual(full)
      expect((await send({ gstin: null })).json).toMatchObject({ gstin: null, pan: null, state: null, legal_name: 'Rao Textiles' })
    } finally {
      await open.stop()
    }
  })

  test('BILL-19 SHAPE-17 the check of a GSTIN returns its PAN and state', async () => {
    const check = async (gstin: unknown) => (await post('/me/billing/validate-gstin', { gstin })).json
    expect(await check(iocl)).toEqual({ valid: true, pan: 'AAACI1681G', state: 'Karnataka', state_code: '29' })
    expect(await check(' 27aagcg4576j1z6 ')).toEqual({ valid: true, pan: 'AAGCG4576J', state: 'Maharashtra', state_code: '27' })
    for (const [gstin, reason] of [
      ['29AAACI1681G1ZM', 'check_digit'],
      ['00AAACI1681G1ZL', 'unknown_state'],
      ['29AAACI1681G1Z', 'format'],
      ['', 'format'],
    ]) {
      const reply = await post('/me/billing/validate-gstin', { gstin })
      expect([reply.status, reply.json]).toEqual([200, { valid: false, reason, message: expect.any(String) }])
    }
    for (const gstin of [7, null, undefined]) expect((await check(gstin)).error.code).toBe('bad_request')
  })
})

describe('roles', () => {
  /** Every billing endpoint that only owners may call. The body or path of each entry lets an owner's request get past the check of the role. */
  const ownerOnly: [string, string, unknown?][] = [
    ['POST', '/me/billing/address', {}],
    ['POST', '/me/billing/orders', {}],
    ['POST', '/me/billing/verify', {}],
    ['POST', '/me/billing/promo/check', {}],
    ['POST', '/me/billing/settings', {}],
    ['GET', '/me/billing/receipts/pay_unknown'],
    ['POST', '/me/billing/profile', { legal_name: '' }],
    ['POST', '/me/billing/validate-gstin', {}],
  ]

  test('BILL-17 PERM-05 members and admins get 403 on every endpoint of owners, whatever the body is', async () => {
    for (const [method, path, body] of ownerOnly) {
      const headers = { origin: new URL(app.baseUrl).origin }
      for (const [cookie, status] of [
        [member.cookie, 403],
        [admin.cookie, 403],
      ] as const) {
        const refused = await app.call(method, path, body, { cookie, headers })
        expect([method, path, refused.status, refused.json.error.code]).toEqual([method, path, status, 'forbidden'])
      }
      const beyond = await app.call(method, path, body, { cookie: owner, headers })
      expect([method, path, beyond.status]).toEqual([method, path, expect.toBeOneOf([200, 400, 404, 503])])
    }
    const done = await app.call('POST', '/me/billing/address', good, { cookie: admin.cookie, headers: { origin: new URL(app.baseUrl).origin } })
    expect(done.status).toBe(403)
  })

  test('PERM-06 members, admins and owners read the billing data that is open to all roles; a request without a session is refused', async () => {
    const open = ['/me/billing', '/me/invoices', '/me/billing/pincode/560001', '/me/billing/profile']
    for (const path of open) {
      for (const cookie of [owner, admin.cookie, member.cookie]) expect([path, (await get(path, cookie)).status]).toEqual([path, 200])
      for (const token of [null, app.key]) expect([path, (await app.call('GET', path, undefined, { token })).status]).toEqual([path, 401])
    }
    // An invoice is named by the id of its payment. Every role gets past the check of the role, so the reply is 404.
    for (const cookie of [owner, admin.cookie, member.cookie]) expect((await get('/me/invoices/pay_unknown', cookie)).status).toBe(404)
  })
})
