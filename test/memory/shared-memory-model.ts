/** The simplest model of shared memory: a map of objects, a map of shares, a quota and a clock. It uses no code of src. */

/** The number of the acting person: 0 is the owner of the organisation, 1 an admin, 2 and 3 are members. Only 2 is in the team. */
export type Who = 0 | 1 | 2 | 3
export type Outcome = string

interface Share {
  readonly owner: Who
  readonly members: Set<Who>
  isRetired: boolean
}

interface Entry {
  readonly text: string
  readonly atMs: number
}

const dayMs = 86_400_000
const isManager = (who: Who): boolean => who < 2

export class MemoryModel {
  readonly shares = new Map<string, Share>()
  readonly objects = new Map<string, Entry>()
  ttlDays = 30
  nowMs = 0

  readonly quotaBytes: number

  constructor(quotaBytes: number) {
    this.quotaBytes = quotaBytes
  }

  /** Paths begin with their class: `user<n>/`, `team/`, `agents/`, `records/`, `shared-<space>/`. */
  mayRead(who: Who, path: string): boolean {
    const [root = ''] = path.split('/')
    if (root === 'agents' || root === 'records') return true
    if (root === 'team') return who === 2
    if (root.startsWith('user')) return root === `user${who}`
    const share = this.shares.get(root.slice('shared-'.length))
    return share !== undefined && !share.isRetired && (share.owner === who || share.members.has(who))
  }

  read(who: Who, path: string): Outcome {
    if (!this.mayRead(who, path)) return 'forbidden'
    const entry = this.objects.get(path)
    return entry === undefined || this.#isOver(path, entry) ? 'not_found' : `ok ${entry.text}`
  }

  write(who: Who, path: string, text: string): Outcome {
    if (!this.mayRead(who, path) || path.startsWith('records/')) return 'forbidden'
    return this.#put(path, text)
  }

  promote(who: Who, path: string, text: string): Outcome {
    return isManager(who) ? this.#put(path, text) : 'forbidden'
  }

  remove(who: Who, path: string): Outcome {
    if (!this.mayRead(who, path) || path.startsWith('records/')) return 'forbidden'
    this.objects.delete(path)
    return 'ok'
  }

  /** Returns how many of several new objects of one size fit into the quota when they are written concurrently. */
  fitting(count: number, bytes: number): number {
    return Math.min(count, Math.floor((this.quotaBytes - this.usedBytes()) / bytes))
  }

  list(who: Who): string[] {
    return [...this.objects].filter(([path, entry]) => this.mayRead(who, path) && !this.#isOver(path, entry)).map(([path]) => path)
  }

  open(who: Who, space: string, members: readonly Who[]): Outcome {
    const known = this.shares.get(space)
    if (known?.isRetired) return 'space_retired'
    if (known !== undefined && known.owner !== who) return 'space_taken'
    const share = known ?? { owner: who, members: new Set<Who>(), isRetired: false }
    for (const member of members) if (member !== who) share.members.add(member)
    this.shares.set(space, share)
    return 'ok'
  }

  grant(who: Who, space: string, member: Who): Outcome {
    const share = this.shares.get(space)
    if (share === undefined) return 'not_found'
    if (share.owner !== who && !isManager(who)) return 'forbidden'
    if (share.isRetired) return 'space_retired'
    if (member !== share.owner) share.members.add(member)
    return 'ok'
  }

  revoke(who: Who, space: string, member: Who): Outcome {
    const share = this.shares.get(space)
    if (share === undefined) return 'not_found'
    if (share.owner !== who && !isManager(who)) return 'forbidden'
    if (member === share.owner) return 'share_owner'
    share.members.delete(member)
    return 'ok'
  }

  retire(who: Who, space: string): Outcome {
    const share = this.shares.get(space)
    if (share === undefined) return 'not_found'
    if (share.owner !== who && !isManager(who)) return 'forbidden'
    share.isRetired = true
    share.members.clear()
    return 'ok'
  }

  /** Removes expired entries. */
  purge(): void {
    for (const [path, entry] of this.objects) if (this.#isOver(path, entry)) this.objects.delete(path)
  }

  usedBytes(): number {
    return [...this.objects.values()].reduce((sum, { text }) => sum + text.length, 0)
  }

  #put(path: string, text: string): Outcome {
    const old = this.objects.get(path)?.text.length ?? 0
    // When the quota was lowered below the used bytes, a write that does not increase them is still allowed.
    if (text.length > old && this.usedBytes() - old + text.length > this.quotaBytes) return 'memory_quota_exceeded'
    this.objects.set(path, { text, atMs: this.nowMs })
    return 'ok'
  }

  #isOver(path: string, { atMs }: Entry): boolean {
    return path.startsWith('team/') && this.nowMs - atMs > this.ttlDays * dayMs
  }
}
