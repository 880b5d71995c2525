/** An organisation of four people on the real memory service. Every step acts on it and on the model, and then compares the two. */
import { expect } from 'vitest'
import type { MemoryCall } from '../../src/memory/access/memory-call.ts'
import type { StoreInput } from '../../src/memory/config/store-input.ts'
import { saveQuota } from '../../src/memory/objects/queries.ts'
import { type Db, statement } from '../../src/platform/db/db.ts'
import { callFrom, errorCode, keyOf, type TestMemory } from './service.ts'
import { MemoryModel, type Outcome, type Who } from './shared-memory-model.ts'

const dayMs = 86_400_000
const everyone: readonly Who[] = [0, 1, 2, 3]
const roles = ['owner', 'admin', 'member', 'member'] as const

const addOrg = statement<[], { id: number }>('test.model_org', `insert into orgs (name, kind, created_at) values ('Model', 'team', now()) returning id`)
const addUser = statement<[email: string], { id: number }>('test.model_user', `insert into users (email, created_at) values ($1::text, now()) returning id`)
const addMember = statement<[orgId: number, userId: number, role: string]>(
  'test.model_member',
  `insert into org_members (org_id, user_id, role, created_at) values ($1::int, $2::int, $3::text, now())`,
)
const addTeam = statement<[orgId: number, userId: number], { id: number }>(
  'test.model_team',
  `with made as (insert into workspaces (org_id, name, created_at) values ($1::int, 'Crew', now()) returning id)
   insert into workspace_members (org_id, workspace_id, user_id, created_at) select $1::int, id, $2::int, now() from made returning workspace_id as id`,
)

/** Makes the four people once. Each run has an organisation of its own. */
export async function modelPeople(db: Db): Promise<number[]> {
  const ids: number[] = []
  for (const who of everyone) ids.push((await db.one(addUser, `model-${who}@example.test`)).id)
  return ids
}

export class World {
  readonly model: MemoryModel
  readonly #db: Db
  readonly #testing: TestMemory
  readonly #people: readonly number[]
  readonly #orgId: number
  readonly #team: number
  #count = 0
  #checks = 0

  private constructor(db: Db, testing: TestMemory, people: readonly number[], orgId: number, team: number, quotaBytes: number) {
    this.#db = db
    this.#testing = testing
    this.#people = people
    this.#orgId = orgId
    this.#team = team
    this.model = new MemoryModel(quotaBytes)
    this.model.nowMs = testing.clock.nowMs()
  }

  static async start(db: Db, testing: TestMemory, people: readonly number[], input: StoreInput, quotaBytes: number): Promise<World> {
    const { id: orgId } = await db.one(addOrg)
    for (const who of everyone) await db.exec(addMember, orgId, people[who] ?? 0, roles[who])
    const { id: team } = await db.one(addTeam, orgId, people[2] ?? 0)
    await testing.memory.config.put(orgId, input)
    // The API sets quotas in megabytes. This sets a smaller one directly, so that small objects can reach it.
    await db.exec(saveQuota, orgId, BigInt(quotaBytes))
    return new World(db, testing, people, orgId, team, quotaBytes)
  }

  async read(who: Who, path: string): Promise<void> {
    const real = await this.#outcome(async () => `ok ${(await this.#testing.memory.objects.read(this.#call(who), this.#key(path))).bytes.toString()}`)
    expect(real).toBe(this.model.read(who, path))
  }

  async write(who: Who, path: string, bytes: number): Promise<void> {
    const text = this.#text(bytes)
    this.#tick()
    const real = await this.#outcome(() => this.#testing.memory.objects.write(this.#call(who), this.#key(path), Buffer.from(text)))
    expect(real).toBe(this.model.write(who, path, text))
  }

  async promote(who: Who, name: string, bytes: number): Promise<void> {
    const text = this.#text(bytes)
    this.#tick()
    // The endpoint allows only owners and admins. Another test checks this.
    if (who > 1) return
    const params = { workspaceId: undefined, name, content: text, sourceKeys: [] }
    const real = await this.#outcome(() => this.#testing.memory.promotions.promote(this.#call(who), params, {}))
    expect(real).toBe(this.model.promote(who, `records/${name}`, text))
  }

  async remove(who: Who, path: string): Promise<void> {
    const real = await this.#outcome(() => this.#testing.memory.objects.remove(this.#call(who), this.#key(path)))
    expect(real).toBe(this.model.remove(who, path))
  }

  /** Writes new objects concurrently. The quota must accept as many as fit, whoever writes them, and the usage must then equal their size. */
  async crowd(count: number, bytes: number): Promise<void> {
    this.#tick()
    const fitting = this.model.fitting(count, bytes)
    const writes = Array.from({ length: count }, (_, at) => ({ path: `agents/crowd-${++this.#count}`, text: this.#text(bytes), who: everyone[at % 4] ?? 0 }))
    const outcomes = await Promise.all(
      writes.map(({ who, path, text }) => this.#outcome(() => this.#testing.memory.objects.write(this.#call(who), this.#key(path), Buffer.from(text)))),
    )
    expect(outcomes.filter(outcome => outcome === 'ok')).toHaveLength(fitting)
    expect(outcomes.filter(outcome => outcome === 'memory_quota_exceeded')).toHaveLength(count - fitting)
    writes.forEach(({ who, path, text }, at) => {
      if (outcomes[at] === 'ok') this.model.write(who, path, text)
    })
  }

  async open(who: Who, space: string, members: readonly Who[]): Promise<void> {
    const uids = members.map(member => this.#uid(member))
    expect(await this.#outcome(() => this.#testing.memory.shares.create(this.#actor(who), space, uids))).toBe(this.model.open(who, space, members))
  }

  async change(what: 'grant' | 'revoke', who: Who, space: string, member: Who): Promise<void> {
    expect(await this.#outcome(() => this.#testing.memory.shares[what](this.#actor(who), space, this.#uid(member)))).toBe(this.model[what](who, space, member))
  }

  async retire(who: Who, space: string): Promise<void> {
    expect(await this.#outcome(() => this.#testing.memory.shares.retire(this.#actor(who), space))).toBe(this.model.retire(who, space))
  }

  pass(days: number): void {
    this.#testing.clock.advance(days * dayMs)
    this.#tick()
  }

  async keepFor(days: number): Promise<void> {
    await this.#testing.memory.config.put(this.#orgId, { journal_ttl_days: days })
    await this.#db.exec(saveQuota, this.#orgId, BigInt(this.model.quotaBytes))
    this.model.ttlDays = days
  }

  async purge(): Promise<void> {
    this.#tick()
    await this.#testing.memory.purge.purge(this.#orgId, new AbortController().signal)
    this.model.purge()
  }

  /** Compares the usage with the model, and also the view of one of the four people, in turn. */
  async check(): Promise<void> {
    await this.#checkUsage()
    await this.#checkViews(everyone[++this.#checks % everyone.length] ?? 0)
  }

  /** Compares the views of all four people. */
  async checkAll(): Promise<void> {
    await this.#checkUsage()
    for (const who of everyone) await this.#checkViews(who)
  }

  async #checkUsage(): Promise<void> {
    const { usedBytes, reservedBytes, objects } = await this.#testing.usage(this.#orgId)
    expect([Number(usedBytes), Number(reservedBytes), Number(objects)]).toEqual([this.model.usedBytes(), 0, this.model.objects.size])
  }

  async #checkViews(who: Who): Promise<void> {
    this.#tick()
    const listed = await this.#testing.memory.objects.list(this.#call(who), '')
    expect(listed.map(({ key }) => key)).toEqual(
      this.model
        .list(who)
        .map(path => this.#key(path))
        .sort(),
    )
    const { shares } = await this.#testing.memory.shares.list(this.#orgId, this.#uid(who), { isAll: false, limit: 100, cursor: undefined })
    const mine = [...this.model.shares].filter(([, share]) => !share.isRetired && (share.owner === who || share.members.has(who)))
    expect(shares.map(({ space, owner, member_uids }) => [space, owner, [...member_uids].sort()])).toEqual(
      mine.map(([space, share]) => [space, this.#uid(share.owner), [...share.members].map(member => this.#uid(member)).sort()]).sort(),
    )
  }

  async #outcome(work: () => Promise<unknown>): Promise<Outcome> {
    let value: unknown
    const code = await errorCode(async () => {
      value = await work()
    })
    return code === 'ok' && typeof value === 'string' ? value : code
  }

  #tick(): void {
    this.model.nowMs = this.#testing.clock.nowMs()
  }

  #text(bytes: number): string {
    return `${++this.#count}`.padEnd(bytes, 'x').slice(0, bytes)
  }

  #uid(who: Who): number {
    return this.#people[who] ?? 0
  }

  #actor(who: Who): { orgId: number; userId: number } {
    return { orgId: this.#orgId, userId: this.#uid(who) }
  }

  #call(who: Who): MemoryCall {
    return callFrom(keyOf(this.#orgId, { userId: this.#uid(who), role: roles[who] }))
  }

  /** Converts a path of the model to a real key. */
  #key(path: string): string {
    const [root = '', ...rest] = path.split('/')
    const name = rest.join('/')
    if (root === 'agents') return `agents/${name}`
    if (root === 'records') return `org/records/${name}`
    if (root === 'team') return `workspaces/${this.#team}/journal/${name}`
    if (root.startsWith('user')) return `users/${this.#uid(Number(root.slice('user'.length)) as Who)}/${name}`
    return `shared/${root.slice('shared-'.length)}/${name}`
  }
}
