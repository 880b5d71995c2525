import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import { cleanEmail } from '../../../platform/values/email-address.ts'
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

/** A person as an identity provider describes them after a sign-in. */
export interface ProvenIdentity {
  /** `google`, `github`, or `oidc` with the URL of an issuer of the operator's file. */
  readonly provider: string
  /** The provider's id of the account. A provider never gives the id to another account. */
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
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression removes control characters.
const controlCharacters = /[\u0000-\u001f\u007f-\u009f]/gu

/** People who sign in. The first sign-in of an identity makes a user and a personal organisation. */
export class People {
  readonly #deps: PeopleDeps
  constructor(deps: PeopleDeps) {
    this.#deps = deps
  }

  /**
   * Returns the user of an identity: the linked user, otherwise the user with the verified address, otherwise a new user. Afterwards the user is an
   * active member of at least one organisation. Concurrent sign-ins of one person make only one user and one organisation. Throws `bad_request` when
   * the identity is new and has no usable verified address.
   */
  arrive(identity: ProvenIdentity): Promise<{ userId: number }> {
    return this.#deps.db.tx(async tx => {
      const person = await this.#recognise(tx, identity)
      await this.#settle(tx, { ...person, name: person.name ?? shownName(identity.name) })
      return { userId: person.id }
    })
  }

  /** Like `arrive`, but makes no organisation: the caller decides first which one the person joins, and then calls `ensureOrg`. */
  recognise(identity: ProvenIdentity): Promise<{ userId: number }> {
    return this.#deps.db.tx(async tx => ({ userId: (await this.#recognise(tx, identity)).id }))
  }

  /** Returns whether the person is a member of any organisation. */
  async isMember(userId: number): Promise<boolean> {
    return (await this.#deps.db.maybe(hasMembership, userId)) !== null
  }

  async #recognise(tx: Tx, identity: ProvenIdentity): Promise<PersonRow> {
    const known = await tx.maybe(findIdentity, identity.provider, identity.subject)
    const userId = known?.userId ?? (await this.#link(tx, identity))
    const person = await tx.one(lockPerson, userId)
    if (known === null) await tx.exec(fillProfile, userId, shownName(identity.name), cleanAvatarUrl(identity.avatarUrl))
    return person
  }

  /** Gives a person without any membership a personal organisation. */
  async ensureOrg(userId: number): Promise<void> {
    await this.#deps.db.tx(async tx => this.#settle(tx, await tx.one(lockPerson, userId)))
  }

  /** Returns the person with this address in upper or lower case, or null. */
  findByEmail(email: string): Promise<PersonRow | null> {
    return this.#deps.db.maybe(findPersonByEmail, email.trim())
  }

  /** Like `findByEmail`, but makes a user for an address that has an open invitation. */
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
    // A concurrent sign-in may have linked the same identity first.
    return (await tx.one(findIdentity, provider, subject)).userId
  }

  /**
   * Makes sure that the person is a member of an organisation. The caller has locked the person's row, so no concurrent transaction makes the same
   * decision.
   */
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

/** Returns the provider's name of a person in a form that is valid here, shortened if necessary. Returns null when nothing of it is left. */
function shownName(name: string | null): string | null {
  const clean = [...(name ?? '').replace(controlCharacters, ' ').trim()].slice(0, nameMax).join('').trim()
  return clean === '' ? null : clean
}

function cleanAvatarUrl(url: string | null): string | null {
  if (url === null || url.length > avatarUrlMax || !URL.canParse(url)) return null
  return new URL(url).protocol === 'https:' ? url : null
}
