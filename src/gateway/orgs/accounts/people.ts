import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import { cleanEmail } from './email-address.ts'
import {
  fillProfile,
  findIdentity,
  findPersonalOrg,
  findPersonByEmail,
  hasMembership,
  insertIdentity,
  insertInvitedPerson,
  insertPerson,
  insertPersonalOrg,
  lockPerson,
  ownPersonalOrg,
  type PersonRow,
} from './people-queries.ts'

/** Somebody as an identity provider vouches for them. */
export interface ProvenIdentity {
  /** `google` or `github`. */
  readonly provider: string
  /** The id that the provider never gives to anybody else. */
  readonly subject: string
  /** Null when the provider has not verified an address. */
  readonly verifiedEmail: string | null
  readonly name: string | null
  readonly avatarUrl: string | null
}

export interface PeopleDeps {
  readonly db: Db
  readonly clock: Clock
}

const nameMax = 100
const avatarUrlMax = 2048
// biome-ignore lint/suspicious/noControlCharactersInRegex: taking control characters out is the point.
const controlCharacters = /[\u0000-\u001f\u007f-\u009f]/gu

/** Who signs in: the person behind an identity, made at the first sign-in together with an organisation of their own. */
export class People {
  readonly #deps: PeopleDeps
  constructor(deps: PeopleDeps) {
    this.#deps = deps
  }

  /**
   * The user behind an identity: the one that it was linked to before, else the one of the verified address, else a new one. The user
   * is an active member of some organisation afterwards. However many sign-ins of one person run concurrently, they make one user and one
   * organisation. Throws `bad_request` when the identity is new and has no verified address.
   */
  arrive(identity: ProvenIdentity): Promise<{ userId: number }> {
    return this.#deps.db.tx(async tx => {
      const known = await tx.maybe(findIdentity, identity.provider, identity.subject)
      const userId = known?.userId ?? (await this.#link(tx, identity))
      const person = await tx.one(lockPerson, userId)
      if (known === null) await tx.exec(fillProfile, userId, shownName(identity.name), cleanAvatarUrl(identity.avatarUrl))
      await this.#settle(tx, { ...person, name: person.name ?? shownName(identity.name) })
      return { userId }
    })
  }

  /** Gives a person who is a member nowhere an organisation of their own. */
  async ensureOrg(userId: number): Promise<void> {
    await this.#deps.db.tx(async tx => this.#settle(tx, await tx.one(lockPerson, userId)))
  }

  /** The person of that address, in any case of letters, or null. */
  findByEmail(email: string): Promise<PersonRow | null> {
    return this.#deps.db.maybe(findPersonByEmail, email.trim())
  }

  /** The same; somebody whom an open invitation waits for becomes known by this. */
  async findInvited(email: string): Promise<PersonRow | null> {
    const { db, clock } = this.#deps
    const found = await this.findByEmail(email)
    if (found !== null) return found
    await db.exec(insertInvitedPerson, email.trim(), new Date(clock.nowMs()))
    return this.findByEmail(email)
  }

  async #link(tx: Tx, { provider, subject, verifiedEmail }: ProvenIdentity): Promise<number> {
    const email = cleanEmail(verifiedEmail ?? '')
    if (email === null)
      throw fail('bad_request', {
        message:
          verifiedEmail === null
            ? `Your account at ${provider} has no verified e-mail address. Verify the address there and sign in again.`
            : `The e-mail address of your account at ${provider} cannot be used here, because it holds letters that other addresses could hold in another form. Sign in with another address.`,
      })
    const now = new Date(this.#deps.clock.nowMs())
    await tx.exec(insertPerson, email, now)
    const { id } = await tx.one(findPersonByEmail, email)
    await tx.exec(insertIdentity, provider, subject, id, now)
    // Another sign-in of the same identity may have come first.
    return (await tx.one(findIdentity, provider, subject)).userId
  }

  /** The person's row is locked, so nobody else decides this at the same time. */
  async #settle(tx: Tx, person: PersonRow): Promise<void> {
    if ((await tx.maybe(hasMembership, person.id)) !== null) return
    const now = new Date(this.#deps.clock.nowMs())
    await tx.exec(insertPersonalOrg, personalOrgName(person), person.id, now)
    const org = await tx.one(findPersonalOrg, person.id)
    await tx.exec(ownPersonalOrg, org.id, person.id, now)
  }
}

function personalOrgName({ name, email }: PersonRow): string {
  return shownName(name) ?? shownName(email.split('@')[0] ?? null) ?? 'Personal'
}

/** A name as a provider gives it, cut to what a name may be here; null when nothing is left. */
function shownName(name: string | null): string | null {
  const clean = [...(name ?? '').replace(controlCharacters, ' ').trim()].slice(0, nameMax).join('').trim()
  return clean === '' ? null : clean
}

function cleanAvatarUrl(url: string | null): string | null {
  if (url === null || url.length > avatarUrlMax || !URL.canParse(url)) return null
  return new URL(url).protocol === 'https:' ? url : null
}
