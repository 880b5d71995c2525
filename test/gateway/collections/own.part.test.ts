import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stemOf } from '../../../src/gateway/collections/collection-slug.ts'
import { statement } from '../../../src/platform/db/db.ts'
import type { TestApp } from '../../harness/app.ts'
import type { OwnServer } from '../byok/own-server.ts'
import { params, type Team, teamOf } from './team.ts'
import { collectionsMax, type Watched } from './watched.ts'

const setVersion = statement<[id: number, version: number]>('test.set_version', 'update collections set version = $2::int where id = $1::int')

/** Tests what an organisation does with its own collections. */
export function ownCollections(world: () => Watched): void {
  describe('collections of an organisation', () => {
    let app: TestApp
    let server: OwnServer
    let home: Team
    let other: Team
    const teams: Team[] = []
    const newTeam = async (name: string): Promise<Team> => {
      const team = await teamOf(app, name)
      teams.push(team)
      return team
    }
    beforeAll(async () => {
      ;({ app, own: server } = world())
      home = await newTeam('Home')
      other = await newTeam('Other')
    })
    // All tests share the public registry, so the collections are removed.
    afterAll(() => Promise.all(teams.map(team => team.clear())))

    const outcome = ({ status, json }: { status: number; json: { error?: { code: string } } }) => [status, json.error?.code]

    test('COLL-01 SHAPE-19 owner and admin create a collection from name, model and steps: the reply is 201 with the record at version 1', async () => {
      const readme = '# Title\r\n\n<script>alert(1)</script>\tकम्पनी 😀'
      const steps = ['alpha-only', { model: 'test-model', provider: 'beta' }, { model: 'auto', provider: null }]
      const made = await home.post('', { name: '  My Chain ', model: 'test-model', steps, readme_md: readme })
      expect(made.status).toBe(201)
      expect(made.json).toEqual({
        id: expect.any(Number),
        slug: expect.stringMatching(/^my-chain-[0-9a-f]{8}$/),
        name: 'My Chain',
        model: 'test-model',
        steps: [{ model: 'alpha-only' }, { model: 'test-model', provider: 'beta' }, { model: 'auto' }],
        readme_md: readme,
        public: false,
        version: 1,
        stars: 0,
        forks: 0,
        starred: false,
        forked_from: null,
        monitored: false,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        updated_at: made.json.created_at,
      })
      const byAdmin = await home.post('', params({ name: 'By an admin', public: true }), home.admin)
      expect([byAdmin.status, byAdmin.json.public, byAdmin.json.readme_md]).toEqual([201, true, ''])
      expect((await home.list()).json.collections[0]).toEqual(byAdmin.json)
      // GET of one collection returns the same record with its versions.
      const detail = await home.get(`/${made.json.id}`)
      const first = { version: 1, name: 'My Chain', model: 'test-model', steps: made.json.steps, created_at: made.json.created_at }
      expect(detail.json).toEqual({ ...made.json, versions: [first] })
      const shown = await app.call('GET', '/v1/collections/by-an-admin', undefined, { token: null })
      expect(Object.keys(shown.json).sort()).toEqual([...Object.keys(byAdmin.json), 'versions'].sort())
      const [listed] = (await app.call('GET', '/v1/collections', undefined, { token: null })).json.collections
      expect(Object.keys(listed).sort()).toEqual([...Object.keys(byAdmin.json), 'readme_cut'].sort())
    })

    test('COLL-02 an invalid name, readme, steps or model is 400 with its own code on creating and editing, and nothing changes', async () => {
      const { json: kept } = await home.post('', params({ name: 'Kept as it is' }))
      const before = (await home.list()).json
      const half = '\ud800'
      const bad: Readonly<Record<string, readonly Record<string, unknown>[]>> = {
        bad_name: ['', '   ', 'x'.repeat(101), 'a\u0000b', 'a\nb', 'to\u202egnp', 'a\u2028b', '\u200b', 7, null, [], {}].map(name => ({ name })),
        bad_readme: ['x'.repeat(64 * 1024 + 1), 'é'.repeat(32 * 1024 + 1), 'a\u0000b', '\u001b[31m', 7, [], {}].map(readme_md => ({ readme_md })),
        bad_steps: [
          ...[[], Array(11).fill('alpha-only'), 'alpha-only', {}, null, 7, [7], [''], [{}], [{ model: 7 }], [{ model: 'alpha-only', weight: 1 }]],
          ...[
            ['nothing'],
            ['nobody/model'],
            [half],
            ['alpha/a\u0000b'],
            [`alpha/${half}`],
            ['x'.repeat(257)],
            [{ model: 'alpha-only', provider: 'nobody' }],
            [{ model: 'alpha-only', provider: 'byoe:none' }],
          ],
        ].map(steps => ({ steps })),
        bad_model: ['nothing', 'auto', 'auto:cheapest', 'alpha/some-model', '', 7, null, [], half].map(model => ({ model })),
      }
      for (const [code, paramsList] of Object.entries(bad))
        for (const part of paramsList) {
          const said = JSON.stringify(part).slice(0, 80)
          expect(outcome(await home.post('', params(part))), said).toEqual([400, code])
          expect(outcome(await home.patch(kept.id, part)), said).toEqual([400, code])
        }
      for (const [name, code] of Object.entries({ name: 'bad_name', model: 'bad_model', steps: 'bad_steps' }))
        expect(outcome(await home.post('', { ...params(), [name]: undefined }))).toEqual([400, code])
      expect(outcome(await home.post('', params({ public: 'yes' })))).toEqual([400, 'bad_request'])
      expect(outcome(await home.patch(kept.id, { public: 1 }))).toEqual([400, 'bad_request'])
      expect((await home.list()).json).toEqual(before)
      const full = 'é'.repeat(32 * 1024)
      expect((await home.patch(kept.id, { readme_md: full })).json).toMatchObject({ readme_md: full, version: 2 })
      expect((await home.patch(kept.id, { readme_md: null, name: `half ${half}` })).json).toMatchObject({ readme_md: '', name: 'half \ufffd', version: 3 })
    })

    test('COLL-03 COLLECTIONS_MAX limits the collections of an organisation, including forks and concurrent requests: 400 cap', async () => {
      const team = await newTeam('Collectors')
      const replies = await Promise.all(Array.from({ length: collectionsMax + 5 }, (_, index) => team.post('', params({ name: `Number ${index}` }))))
      expect(replies.filter(({ status }) => status === 201)).toHaveLength(collectionsMax)
      for (const reply of replies.filter(({ status }) => status !== 201)) {
        expect(outcome(reply)).toEqual([400, 'cap'])
        expect(reply.json.error.message).toContain(String(collectionsMax))
      }
      const { json: foreign } = await other.post('', params({ name: 'Too much', public: true }))
      expect(outcome(await team.post(`/fork/${foreign.slug}`))).toEqual([400, 'cap'])
      expect(outcome(await team.post(`/import/${foreign.slug}`))).toEqual([400, 'cap'])
      expect((await team.routing()).json.chains).toEqual([])
      const { collections } = (await team.list()).json
      expect(collections).toHaveLength(collectionsMax)
      expect((await team.remove(collections[0].id)).json).toEqual({ ok: true })
      expect((await team.post(`/fork/${foreign.slug}`)).status).toBe(201)
      // The fork already exists, so this request needs no room.
      expect((await team.post(`/fork/${foreign.slug}`)).status).toBe(200)
    })

    test('COLL-04 an edit creates the next version and every version is kept; publishing and an edit that changes nothing create no version, and the slug stays', async () => {
      const { json: made } = await home.post('', params({ name: 'Evolving', readme_md: 'one' }))
      const at = (id: number, query = '') => home.get(`/${id}${query}`, home.member)
      const edits: readonly (readonly [object, number])[] = [
        [{}, 1],
        [{ name: 'Evolving', steps: [{ model: 'alpha-only' }], readme_md: 'one', model: 'test-model', public: false }, 1],
        [{ name: 'Renamed' }, 2],
        [{ steps: ['alpha-only', 'same-id'] }, 3],
        [{ public: true }, 3],
        [{ public: null }, 3],
        [{ readme_md: 'two' }, 4],
        [{ model: 'alpha-only', public: false }, 5],
        [{ model: 'alpha-only' }, 5],
      ]
      for (const [edit, version] of edits) {
        const reply = await home.patch(made.id, edit)
        expect([reply.status, reply.json.version, reply.json.slug], JSON.stringify(edit)).toEqual([200, version, made.slug])
      }
      const { versions, ...now } = (await at(made.id)).json
      expect(now).toMatchObject({ name: 'Renamed', model: 'alpha-only', readme_md: 'two', steps: [{ model: 'alpha-only' }, { model: 'same-id' }], version: 5 })
      expect(versions.map((each: { version: number; name: string; model: string }) => [each.version, each.name, each.model])).toEqual([
        [5, 'Renamed', 'alpha-only'],
        [4, 'Renamed', 'test-model'],
        [3, 'Renamed', 'test-model'],
        [2, 'Renamed', 'test-model'],
        [1, 'Evolving', 'test-model'],
      ])
      const first = (await at(made.id, '?version=1')).json
      expect(first).toMatchObject({ version: 1, name: 'Evolving', readme_md: 'one', steps: [{ model: 'alpha-only' }], slug: made.slug })
      expect(outcome(await at(made.id, '?version=6'))).toEqual([404, 'not_found'])
      expect(outcome(await at(made.id, '?version=0'))).toEqual([400, 'bad_request'])
      // Concurrent edits create one version each, and no edit is lost.
      const together = await Promise.all(Array.from({ length: 8 }, (_, index) => home.patch(made.id, { readme_md: `together ${index}` })))
      expect(together.map(({ json }) => json.version).sort((a, b) => a - b)).toEqual([6, 7, 8, 9, 10, 11, 12, 13])
      expect((await at(made.id)).json.versions).toHaveLength(13)
      // Only the newest 500 versions are kept.
      await app.db.exec(setVersion, made.id, 505)
      expect((await home.patch(made.id, { readme_md: 'the 506th' })).json.version).toBe(506)
      expect([(await at(made.id, '?version=6')).status, (await at(made.id, '?version=7')).status]).toEqual([404, 200])
    })

    test('COLL-05 a deleted collection and its slug never come back; its forks and the routing made from it stay', async () => {
      const { json: made } = await home.post('', params({ name: 'Short lived', public: true }))
      const fork = await other.post('/fork/short-lived')
      await home.post('/import/short-lived')
      expect((await home.remove(made.id)).json).toEqual({ ok: true })
      for (const reply of [await home.remove(made.id), await home.patch(made.id, {}), await home.get(`/${made.id}`), await home.post('/fork/short-lived')])
        expect(outcome(reply)).toEqual([404, 'not_found'])
      expect(outcome(await app.call('GET', '/v1/collections/short-lived', undefined, { token: null }))).toEqual([404, 'not_found'])
      const left = (await other.get(`/${fork.json.id}`)).json
      expect(left).toMatchObject({ slug: fork.json.slug, forked_from: 'short-lived', steps: made.steps })
      expect((await other.post(`/import/${left.slug}`)).json.forked_as).toBe(null)
      expect((await home.routing()).json.chains).toContainEqual({ model: 'test-model', steps: made.steps })
      // The slug is not given to another collection, because old links would then lead there.
      expect((await home.post('', params({ name: 'Short lived', public: true }))).json.slug).toBe('short-lived-2')
    })

    test("COLL-09 every member sees the organisation's private, public and forked collections, newest first, and none of other organisations", async () => {
      const team = await newTeam('Lookers')
      const mine = (await team.post('', params({ name: 'Private one' }))).json
      const open = (await team.post('', params({ name: 'Open one', public: true }))).json
      const theirs = (await other.post('', params({ name: 'Theirs', public: true }))).json
      await other.post('', params({ name: 'Theirs alone' }))
      const forked = (await team.post(`/fork/${theirs.slug}`, undefined, team.member)).json
      for (const cookie of [team.owner, team.admin, team.member]) {
        const { collections } = (await team.list(cookie)).json
        expect(collections).toEqual([forked, open, mine])
      }
      expect(forked).toMatchObject({ public: false, forked_from: 'theirs', version: 1, slug: expect.stringMatching(/^theirs-[0-9a-f]{8}$/) })
      expect((await app.call('GET', '/me/collections')).status).toBe(401)
    })

    test('COLL-10 another organisation cannot edit, delete or read a collection by id, public or private: 404 not_found, as for an unknown id', async () => {
      for (const isPublic of [true, false]) {
        const { json: made } = await home.post('', params({ name: `Guarded ${isPublic}`, public: isPublic }))
        const asked = [made.id, 999_999, 0, -1, 'x', '1e3', '99999999999', made.slug]
        for (const id of asked) {
          expect(outcome(await other.patch(id, { name: 'Taken' })), String(id)).toEqual([404, 'not_found'])
          expect(outcome(await other.patch(id, { name: 7 })), String(id)).toEqual([404, 'not_found'])
          expect(outcome(await other.remove(id)), String(id)).toEqual([404, 'not_found'])
          expect(outcome(await other.get(`/${id}`)), String(id)).toEqual([404, 'not_found'])
        }
        expect((await home.get(`/${made.id}`)).json).toMatchObject(made)
        await home.remove(made.id)
      }
    })

    test('a member can read, star and fork, but gets 403 on create, edit, delete and import; an agent token can only read', async () => {
      const { json: made } = await home.post('', params({ name: 'For roles', public: true }))
      const changes = [
        home.post('', params(), home.member),
        home.patch(made.id, { name: 'x' }, home.member),
        home.remove(made.id, home.member),
        home.post('/import/for-roles', undefined, home.member),
      ]
      for (const reply of await Promise.all(changes)) expect(outcome(reply)).toEqual([403, 'forbidden'])
      expect((await home.post('/star/for-roles', undefined, home.member)).json).toMatchObject({ ok: true, starred: true, stars: 1 })
      const { token } = await app.newAgent('reader')
      expect((await app.call('GET', '/me/collections', undefined, { token })).status).toBe(200)
      for (const path of ['/star/for-roles', '/fork/for-roles', '/import/for-roles', ''])
        expect(outcome(await app.call('POST', `/me/collections${path}`, params(), { token }))).toEqual([403, 'forbidden'])
      await home.remove(made.id)
    })

    test('slugs are made from any name, are unique over all organisations and are never reserved path segments', async () => {
      const named = {
        'Ünïcode  Näme!': 'unicode-name',
        हिन्दी: 'collection',
        '😀': 'collection',
        '--GPT-4o & more--': 'gpt-4o-more',
        'ﬁne №1': 'fine-no1',
        STAR: 'star-collection',
      }
      for (const [name, stem] of Object.entries(named)) expect(stemOf(name), name).toBe(stem)
      expect(stemOf(`${'a'.repeat(59)}-b${'c'.repeat(40)}`)).toBe('a'.repeat(59))
      const team = await newTeam('Namers')
      // A slug with a number can already be taken by a name. The next number is then used.
      const slugs = []
      for (const name of ['Slug 2', 'Slug', 'Slug', 'Slug 2', 'Slug']) slugs.push((await team.post('', params({ name, public: true }))).json.slug)
      expect(slugs).toEqual(['slug-2', 'slug', 'slug-3', 'slug-2-2', 'slug-4'])
      // An organisation that takes many numbers does not block the name for others.
      for (let number = 5; number < 11; number++) await team.post('', params({ name: `Slug ${number}`, public: true }))
      expect((await other.post('', params({ name: 'Slug', public: true }))).json.slug).toMatch(/^slug-[0-9a-f]{8}$/)
      await team.clear()
      const crowd = await Promise.all(
        Array.from({ length: 12 }, (_, index) => [home, other, team][index % 3]?.post('', params({ name: 'Crowd', public: true }))),
      )
      const taken = crowd.flatMap(reply => (reply?.status === 201 ? [reply.json] : []))
      expect(taken.length).toBeGreaterThan(6)
      expect(taken.map(({ slug }) => slug).sort()).toEqual(['crowd', ...taken.slice(1).map((_, index) => `crowd-${index + 2}`)].sort())
      for (const each of [home, other, team]) await each.clear()
    })

    test("the name of another organisation's private collection cannot be detected, and such a collection keeps its slug when it is published", async () => {
      const { json: secret } = await other.post('', params({ name: 'Merger of Acme' }))
      const slugsOf = async (isPublic: boolean) => (await home.post('', params({ name: 'Merger of Acme', public: isPublic }))).json.slug
      // The slugs are the same as if no other organisation had a collection with this name.
      expect(await slugsOf(false)).toMatch(/^merger-of-acme-[0-9a-f]{8}$/)
      expect([await slugsOf(true), await slugsOf(true)]).toEqual(['merger-of-acme', 'merger-of-acme-2'])
      expect((await other.patch(secret.id, { public: true })).json.slug).toBe(secret.slug)
      expect((await app.call('GET', `/v1/collections/${secret.slug}`, undefined, { token: null })).json).toMatchObject({ name: 'Merger of Acme' })
      for (const each of [home, other]) await each.clear()
    })

    test('a public collection names no server of its organisation, and its older versions do not show the name of such a server', async () => {
      const endpoint = { name: 'Ours', model: 'test-model', base_url: server.url, upstream_model: 'own-model', key: 'own-server-key-0123456789-TAIL' }
      const registered = await app.call('POST', '/me/endpoints', endpoint, { cookie: home.owner })
      expect(registered.status, registered.text).toBe(201)
      const steps = [{ model: 'test-model', provider: 'byoe:ours' }, { model: 'alpha-only' }]
      expect(outcome(await home.post('', params({ steps, public: true })))).toEqual([400, 'bad_steps'])
      const { json: made } = await home.post('', params({ name: 'Own server', steps }))
      const refused = await home.patch(made.id, { public: true })
      expect(outcome(refused)).toEqual([400, 'bad_steps'])
      expect(refused.json.error.message).toMatch(/steps\[0\]\.provider.*private/)
      // The organisation itself can apply and copy such a version.
      expect((await home.post(`/import/${made.slug}`)).json).toMatchObject({ ok: true, id: made.id, model: 'test-model', steps, forked_as: null })
      const { json: copy } = await home.post(`/fork/${made.slug}`)
      expect(copy).toMatchObject({ steps, forked_from: made.slug, public: false })
      expect((await home.patch(made.id, { public: true, steps: ['alpha-only'] })).json).toMatchObject({ public: true, version: 2 })
      expect(outcome(await home.patch(made.id, { steps }))).toEqual([400, 'bad_steps'])
      const shown = await app.call('GET', `/v1/collections/${made.slug}`, undefined, { token: null })
      expect(shown.text).not.toContain('byoe:')
      expect(shown.json.versions.map((each: { steps: unknown }) => each.steps)).toEqual([
        [{ model: 'alpha-only' }],
        [{ model: 'test-model', provider: 'byoe' }, { model: 'alpha-only' }],
      ])
      // The server has been deleted, so the steps are refused.
      await app.call('DELETE', `/me/endpoints/${registered.json.endpoint.id}`, undefined, { cookie: home.owner })
      expect(outcome(await home.post(`/import/${copy.slug}`))).toEqual([400, 'bad_steps'])
    })

    test('every change is in the audit trail with the id', async () => {
      const { json: made } = await home.post('', params({ name: 'Audited' }))
      await home.patch(made.id, { name: 'Audited again' })
      await home.post(`/star/${made.slug}`)
      await home.post(`/import/${made.slug}`)
      await home.remove(made.id)
      const { json } = await app.call('GET', '/me/audit?limit=5', undefined, { cookie: home.owner })
      expect(json.entries.map((line: { act: string; target: string; outcome: string }) => [line.act, line.target, line.outcome])).toEqual([
        ['deleteCollection', `id=${made.id}`, 'ok'],
        ['importCollection', `id=${made.id}`, 'ok'],
        ['starCollection', `id=${made.id}`, 'ok'],
        ['changeCollection', `id=${made.id}`, 'ok'],
        ['createCollection', `id=${made.id}`, 'ok'],
      ])
    })
  })
}
