import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CollectionRegistry } from '../../../src/gateway/collections/collection-registry.ts'
import { type Db, statement } from '../../../src/platform/db/db.ts'
import { ControlLog } from '../../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { type TestApp, until } from '../../harness/app.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { params, type Team, teamOf } from './team.ts'
import type { Watched } from './watched.ts'

/** Finds collections whose numbers of stars or forks differ from the rows. */
const drifted = statement<[], { slug: string }>(
  'test.drifted_collections',
  `select c.slug from collections c
   where c.stars <> (select count(*) from collection_stars s where s.collection_id = c.id) or c.forks <> (select count(*) from collections f where f.forked_from_id = c.id)`,
)
const replaceSteps = statement<[slug: string, steps: string]>('test.replace_steps', 'update collections set steps = $2::jsonb where slug = $1::text')

/** Tests what organisations do with each other's collections. */
export function sharedCollections(world: () => Watched): void {
  describe('collections of other organisations', () => {
    let app: TestApp
    let clock: MovableClock
    let author: Team
    let reader: Team
    let third: Team
    beforeAll(async () => {
      ;({ app, clock } = world())
      author = await teamOf(app, 'Author')
      reader = await teamOf(app, 'Reader')
      third = await teamOf(app, 'Third')
    })
    afterAll(() => Promise.all([author, reader, third].map(team => team.clear())))

    let made = 0
    const publish = async (parts: object = {}, team = author) => (await team.post('', params({ name: `Public ${++made} thing`, public: true, ...parts }))).json
    const outcome = ({ status, json }: { status: number; json: { error?: { code: string } } }) => [status, json.error?.code]
    const see = (path = '', options: { token?: string | null; headers?: Record<string, string> } = {}) =>
      app.call('GET', `/v1/collections${path}`, undefined, { token: null, ...options })
    const slugsOf = (reply: { json: { collections: { slug: string }[] } }) => reply.json.collections.map(({ slug }) => slug)
    const own = async (team: Team, slug: string) => (await team.list()).json.collections.find((each: { slug: string }) => each.slug === slug)

    test('COLL-06 any role adds and removes the one star of its organisation, and the number of stars is right after concurrent requests', async () => {
      const { slug } = await publish()
      for (const [cookie, starred] of [
        [reader.member, true],
        [reader.admin, false],
        [reader.owner, true],
      ] as const)
        expect((await reader.post(`/star/${slug}`, undefined, cookie)).json).toEqual({ ok: true, id: expect.any(Number), starred, stars: Number(starred) })
      expect((await author.post(`/star/${slug}`)).json).toMatchObject({ starred: true, stars: 2 })
      expect(await own(author, slug)).toMatchObject({ starred: true, stars: 2 })
      // Two organisations toggle their star six times each. So the number is the same afterwards, whatever the order.
      const turns = await Promise.all(Array.from({ length: 12 }, (_, index) => (index % 2 === 0 ? reader : third).post(`/star/${slug}`)))
      expect(turns.map(reply => reply.status)).toEqual(Array(12).fill(200))
      expect(await own(author, slug)).toMatchObject({ stars: 2 })
      expect((await third.post(`/star/${slug}`, { starred: true })).json).toMatchObject({ starred: true, stars: 3 })
      const same = await Promise.all(Array.from({ length: 6 }, () => third.post(`/star/${slug}`, { starred: false })))
      for (const reply of same) expect(reply.json).toMatchObject({ starred: false, stars: 2 })
      // Several organisations star the collection concurrently.
      const crowd = await Promise.all(Array.from({ length: 4 }, (_, index) => app.otherOrg(`Crowd ${index}`)))
      const cookies = await Promise.all(crowd.map(({ userId, orgId }) => app.signIn(userId, orgId)))
      for (const count of [4, 0]) {
        await Promise.all(cookies.map(cookie => author.post(`/star/${slug}`, undefined, cookie)))
        expect(await own(author, slug)).toMatchObject({ stars: 2 + count })
      }
      expect(outcome(await third.post(`/star/${slug}`, { starred: 'yes' }))).toEqual([400, 'bad_request'])
      const hidden = (await author.post('', params({ name: 'Not to be seen' }))).json
      expect((await author.post(`/star/${hidden.slug}`)).json).toMatchObject({ starred: true, stars: 1 })
      for (const unseen of [hidden.slug, 'never-was', 'NEVER', '%00', 'a%2Fb', 'x'.repeat(200)])
        expect(outcome(await reader.post(`/star/${unseen}`)), unseen).toEqual([404, 'not_found'])
      expect(await app.db.many(drifted)).toEqual([])
    })

    test("COLL-07 a fork is a private copy of the present version in the caller's organisation; a second fork returns the first; forking a private collection is 404", async () => {
      const source = await publish({ readme_md: '# Old', steps: ['alpha-only'] })
      await author.patch(source.id, { readme_md: '# New', steps: ['same-id', { model: 'test-model', provider: 'beta' }] })
      const replies = await Promise.all(Array.from({ length: 6 }, () => reader.post(`/fork/${source.slug}`, undefined, reader.member)))
      expect(replies.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 201])
      const fork = replies[0]?.json
      for (const { json } of replies) expect(json).toEqual(fork)
      expect(fork).toMatchObject({
        slug: expect.stringMatching(`^${source.slug}-[0-9a-f]{8}$`),
        name: source.name,
        model: 'test-model',
        public: false,
        version: 1,
        stars: 0,
        forks: 0,
      })
      expect(fork).toMatchObject({ readme_md: '# New', steps: [{ model: 'same-id' }, { model: 'test-model', provider: 'beta' }], forked_from: source.slug })
      expect(await own(author, source.slug)).toMatchObject({ forks: 1, version: 2 })
      // From now on, changes of one do not affect the other.
      await author.patch(source.id, { steps: ['alpha-only'] })
      await reader.patch(fork.id, { name: 'Ours now', public: true })
      expect(await own(reader, fork.slug)).toMatchObject({ name: 'Ours now', steps: fork.steps, version: 2 })
      expect((await see(`/${fork.slug}`)).json).toMatchObject({ forked_from: source.slug })
      // A fork of a fork, and a fork of an own collection.
      expect((await third.post(`/fork/${fork.slug}`)).json).toMatchObject({ slug: expect.stringMatching(/^ours-now-[0-9a-f]{8}$/), forked_from: fork.slug })
      expect((await author.post(`/fork/${source.slug}`)).json).toMatchObject({
        slug: expect.stringMatching(`^${source.slug}-[0-9a-f]{8}$`),
        forked_from: source.slug,
      })
      expect(await own(author, source.slug)).toMatchObject({ forks: 2 })
      // A deleted fork is not counted, and the organisation can fork again.
      await reader.remove(fork.id)
      expect(await own(author, source.slug)).toMatchObject({ forks: 1 })
      expect((await reader.post(`/fork/${source.slug}`)).status).toBe(201)
      // A private source is reported like an unknown one, also to an organisation that has a fork of it.
      await author.patch(source.id, { public: false })
      const unknown = await reader.post('/fork/never-was')
      const hidden = await reader.post(`/fork/${source.slug}`)
      expect([outcome(hidden), hidden.json]).toEqual([[404, 'not_found'], unknown.json])
      expect(await app.db.many(drifted)).toEqual([])
    })

    test("COLL-08 an import makes a collection the routing of the organisation: another organisation's collection through a fork, an own one directly", async () => {
      const source = await publish({ model: 'test-model', steps: [{ model: 'test-model', provider: 'beta' }] })
      const servedBy = async () => {
        const reply = await app.call(
          'POST',
          '/v1/chat/completions',
          { model: 'test-model', messages: [{ role: 'user', content: 'Hi' }] },
          { token: reader.key },
        )
        return reply.headers.get('x-br-provider')
      }
      expect(await servedBy()).toBe('alpha')
      const replies = await Promise.all([1, 2, 3].map(() => reader.post(`/import/${source.slug}`, undefined, reader.admin)))
      const fork = await own(reader, replies[0]?.json.forked_as)
      for (const reply of replies)
        expect([reply.status, reply.json]).toEqual([
          200,
          { ok: true, id: fork.id, model: 'test-model', steps: [{ model: 'test-model', provider: 'beta' }], forked_as: fork.slug },
        ])
      expect(fork).toMatchObject({ public: false, forked_from: source.slug, steps: source.steps })
      expect((await reader.routing()).json.chains).toEqual([{ model: 'test-model', steps: source.steps }])
      expect(await servedBy()).toBe('beta')
      // Later changes by the author change nothing, and a second import applies the fork as it was copied.
      await author.patch(source.id, { steps: [{ model: 'test-model', provider: 'indus' }] })
      expect((await reader.post(`/import/${source.slug}`)).json).toMatchObject({ steps: source.steps, forked_as: fork.slug })
      expect(await servedBy()).toBe('beta')
      // The organisation edits its fork and imports the fork, which applies the edit.
      await reader.patch(fork.id, { steps: [{ model: 'test-model', provider: 'indus' }] })
      expect(await servedBy()).toBe('beta')
      expect((await reader.post(`/import/${fork.slug}`)).json).toMatchObject({ id: fork.id, forked_as: null })
      expect(await servedBy()).toBe('indus')
      expect(await own(author, source.slug)).toMatchObject({ forks: 1 })
      // Steps with a model that is no longer in the catalog are refused, and the collection is not forked either.
      const stale = await publish()
      await app.db.exec(replaceSteps, stale.slug, JSON.stringify([{ model: 'left-the-catalog' }]))
      expect(outcome(await third.post(`/import/${stale.slug}`))).toEqual([400, 'bad_steps'])
      expect((await own(author, stale.slug)).forks).toBe(0)
      expect(outcome(await third.post(`/import/${fork.slug}`))).toEqual([404, 'not_found'])
      expect(outcome(await third.post('/import/never-was'))).toEqual([404, 'not_found'])
      expect((await third.routing()).json.chains).toEqual([])
      expect(await app.db.many(drifted)).toEqual([])
    })

    test('CAT-16 COLL-11 the registry shows only public collections, most stars first, then newest, and nothing about their organisations', async () => {
      for (const team of [author, reader, third]) await team.clear()
      const hidden = (await author.post('', params({ name: 'Hidden thing' }))).json
      const slugs = []
      for (const name of ['First', 'Second', 'Third']) {
        clock.advance(1000)
        slugs.push((await publish({ name, model: name === 'Third' ? 'alpha-only' : 'test-model', readme_md: 'é'.repeat(3000) })).slug)
      }
      expect(slugsOf(await see())).toEqual(['third', 'second', 'first'])
      await reader.post('/star/first')
      await third.post('/star/first')
      await third.post('/star/second')
      // This process shows the change immediately, and does not name the owners.
      const listed = await see()
      expect(slugsOf(listed)).toEqual(['first', 'second', 'third'])
      expect(listed.json.collections[0]).toMatchObject({ stars: 2, starred: false, readme_md: 'é'.repeat(2000), readme_cut: true, public: true })
      for (const reply of [listed, await see('/first')])
        for (const word of ['Author', 'org', 'user', 'created_by', hidden.slug, '@']) expect(reply.text.toLowerCase(), word).not.toContain(word.toLowerCase())
      expect(slugsOf(await see('?model=test-model'))).toEqual(['first', 'second'])
      expect(slugsOf(await see('?model=alpha-only'))).toEqual(['third'])
      expect(slugsOf(await see('?model=nothing'))).toEqual([])
      expect(outcome(await see('?model=%00'))).toEqual([400, 'bad_request'])
      // With a credential, the reply shows the caller's own stars and only private caches may store it.
      const theirs = await see('', { token: third.key })
      expect(theirs.json.collections.map((each: { starred: boolean }) => each.starred)).toEqual([true, true, false])
      expect([theirs.headers.get('cache-control'), (await see('/first', { token: reader.key })).json.starred]).toEqual(['private, max-age=10', true])
      // The marks change no other byte, and a reply without a body says the same about them.
      expect(theirs.text.replaceAll('"starred":true ', '"starred":false')).toBe(listed.text)
      const etag = theirs.headers.get('etag') ?? ''
      const etags = [etag, listed.headers.get('etag'), (await see('', { token: reader.key })).headers.get('etag')]
      expect(new Set(etags).size).toBe(3)
      const unchanged = await see('', { token: third.key, headers: { 'if-none-match': etag } })
      expect([unchanged.status, unchanged.text, unchanged.headers.get('etag')]).toEqual([304, '', etag])
      expect((await see('', { token: reader.key, headers: { 'if-none-match': etag } })).status).toBe(200)
      // Publishing, renaming, making private and deleting take effect immediately.
      await author.patch(hidden.id, { public: true, name: 'Seen' })
      expect(slugsOf(await see())).toEqual(['first', 'second', 'third', hidden.slug])
      expect((await see(`/${hidden.slug}`)).json.name).toBe('Seen')
      await author.patch(hidden.id, { public: false })
      expect(slugsOf(await see())).toEqual(['first', 'second', 'third'])
      expect(outcome(await see(`/${hidden.slug}`))).toEqual([404, 'not_found'])
    })

    test('CAT-17 a public collection is shown with its versions; a private and an unknown one give everybody the same 404, also their owner', async () => {
      const source = await publish({ name: 'With history', readme_md: 'whole '.repeat(1000) })
      await author.patch(source.id, { steps: ['same-id'] })
      await author.patch(source.id, { name: 'With more history' })
      const { json } = await see('/with-history')
      expect(json).toMatchObject({
        slug: 'with-history',
        name: 'With more history',
        version: 3,
        readme_md: 'whole '.repeat(1000),
        steps: [{ model: 'same-id' }],
      })
      expect(json.versions).toEqual([
        { version: 3, name: 'With more history', model: 'test-model', steps: [{ model: 'same-id' }], created_at: expect.any(String) },
        { version: 2, name: 'With history', model: 'test-model', steps: [{ model: 'same-id' }], created_at: expect.any(String) },
        { version: 1, name: 'With history', model: 'test-model', steps: [{ model: 'alpha-only' }], created_at: json.created_at },
      ])
      const hidden = (await author.post('', params({ name: 'Kept back' }))).json
      const unknown = await see('/never-was')
      for (const token of [null, author.key, reader.key]) {
        const reply = await see(`/${hidden.slug}`, { token })
        expect([reply.status, reply.json]).toEqual([404, unknown.json])
      }
      for (const slug of ['%00', '..%2F..', 'A'.repeat(256), '%F0%9F%98%80']) expect(outcome(await see(`/${slug}`)), slug).toEqual([404, 'not_found'])
      // A fork does not show the slug of its source once the source is private.
      const fork = (await reader.post('/fork/with-history')).json
      await reader.patch(fork.id, { public: true })
      expect((await see(`/${fork.slug}`)).json.forked_from).toBe('with-history')
      await author.patch(source.id, { public: false })
      clock.advance(60_000)
      expect((await see(`/${fork.slug}`)).json.forked_from).toBe(null)
      expect(await own(reader, fork.slug)).toMatchObject({ forked_from: 'with-history' })
    })

    test('public pages have a strong ETag and answer 304 to a matching request; they query the database only after a change or when they are old', async () => {
      const source = await publish({ name: 'Asked for often' })
      for (const path of ['', '/asked-for-often', '?model=test-model']) {
        const first = await see(path)
        const etag = first.headers.get('etag') ?? ''
        expect([etag, first.headers.get('cache-control'), first.headers.get('x-content-type-options')]).toEqual([
          expect.stringMatching(/^"[\w-]{20,}"$/),
          'public, max-age=10',
          'nosniff',
        ])
        const again = await see(path, { headers: { 'if-none-match': `"other", W/${etag}` } })
        expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag])
        expect((await see(path, { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
      }
      const before = app.db.roundTrips
      await Promise.all(Array.from({ length: 100 }, (_, index) => see(index % 2 === 0 ? '' : '/asked-for-often')))
      expect(app.db.roundTrips - before).toBeLessThan(60)
      await author.patch(source.id, { readme_md: 'new' })
      expect((await see('/asked-for-often')).json).toMatchObject({ readme_md: 'new', version: 2 })
    })

    test('another process shows edits as soon as it reads the news, and numbers within a minute', async () => {
      const there = await otherProcess(app.db)
      try {
        const source = await publish({ name: 'Seen from afar' })
        const stars = async () => JSON.parse((await there.registry.page('seen-from-afar', null)).bytes.toString()).stars
        await until(() =>
          stars().then(
            found => found === 0,
            () => false,
          ),
        )
        await reader.post('/star/seen-from-afar')
        there.clock.advance(60_000)
        expect(await stars()).toBe(1)
        expect((await there.registry.list(null, null)).bytes.toString()).toContain('seen-from-afar')
        await author.patch(source.id, { public: false })
        await until(() =>
          stars().then(
            () => false,
            () => true,
          ),
        )
        expect((await there.registry.list(null, null)).bytes.toString()).not.toContain('seen-from-afar')
      } finally {
        await there.stop()
      }
    })

    test('stars and forks match a model after any concurrent actions of several organisations', async () => {
      const teams = [author, reader, third]
      const source = fc.nat(1)
      const deed = fc.oneof(
        fc.record({ kind: fc.constant('star' as const), on: source, params: fc.constantFrom(true, false, undefined) }),
        fc.record({ kind: fc.constant('fork' as const), on: source }),
        fc.record({ kind: fc.constant('import' as const), on: source }),
        fc.record({ kind: fc.constant('drop' as const), on: source }),
        fc.record({ kind: fc.constant('show' as const), on: source, isPublic: fc.boolean() }),
        fc.constant({ kind: 'rest' as const, on: 0 }),
      )
      const round = fc.tuple(deed, deed, deed)
      await fc.assert(
        fc.asyncProperty(fc.array(round, { minLength: 3, maxLength: 6 }), async rounds => {
          for (const team of teams) await team.clear()
          const sources = [await publish(), await publish()]
          const stars = sources.map(() => new Set<number>())
          const forks = sources.map(() => new Map<number, number>())
          const act = async (team: Team, at: number, each: (typeof rounds)[number][number]) => {
            const on = sources[each.on]
            if (each.kind === 'star') {
              const { status, json } = await team.post(`/star/${on.slug}`, each.params === undefined ? {} : { starred: each.params })
              if (status === 200) stars[each.on]?.[json.starred ? 'add' : 'delete'](at)
              return status
            }
            if (each.kind === 'fork' || each.kind === 'import') {
              const { status, json } = await team.post(`/${each.kind}/${on.slug}`)
              if (status < 300 && json.id !== on.id) forks[each.on]?.set(at, json.id)
              return status
            }
            if (each.kind === 'drop') {
              const fork = forks[each.on]?.get(at)
              if (fork === undefined) return 404
              forks[each.on]?.delete(at)
              return (await team.remove(fork)).status
            }
            if (each.kind === 'show' && at === 0) return (await author.patch(on.id, { public: each.isPublic })).status
            return 200
          }
          for (const deeds of rounds) {
            const statuses = await Promise.all(deeds.map((each, at) => act(teams[at] ?? author, at, each)))
            for (const status of statuses) expect([200, 201, 404]).toContain(status)
            for (const [index, { id }] of sources.entries()) {
              const { json } = await author.get(`/${id}`)
              expect([json.stars, json.forks, json.starred]).toEqual([stars[index]?.size, forks[index]?.size, stars[index]?.has(0)])
            }
          }
          expect(await app.db.many(drifted)).toEqual([])
        }),
        { numRuns: 3 },
      )
    })

    test('owners can concurrently delete collections that are forks of each other', async () => {
      for (let round = 0; round < 2; round++) {
        const source = await publish()
        const fork = (await reader.post(`/fork/${source.slug}`)).json
        await reader.patch(fork.id, { public: true })
        const last = (await third.post(`/fork/${fork.slug}`)).json
        const acts = [
          author.remove(source.id),
          reader.remove(fork.id),
          third.remove(last.id),
          third.post(`/star/${source.slug}`),
          third.post(`/fork/${source.slug}`),
          author.post(`/star/${fork.slug}`),
          reader.post(`/import/${source.slug}`),
        ]
        const statuses = (await Promise.all(acts)).map(({ status }) => status)
        expect(statuses.slice(0, 3)).toEqual([200, 200, 200])
        for (const status of statuses) expect([200, 201, 404]).toContain(status)
      }
      expect(await app.db.many(drifted)).toEqual([])
    })
  })
}

/** Returns what another process on the same database shows. */
async function otherProcess(db: Db) {
  const clock = movableClock()
  const controlLog = new ControlLog({ db, clock, log: silentLog, pollMs: 50 })
  const registry = new CollectionRegistry({ db, clock, log: silentLog, controlLog })
  await controlLog.start()
  return { clock, registry, stop: () => controlLog.stop() }
}
