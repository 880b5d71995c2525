import type { Clock } from '../../../platform/clock.ts'
import { type Db, statement } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'

/** The settings with which a person's coding agents start. */
export type Profile = ProfileRow

export interface ProfilesDeps {
  readonly db: Db
  readonly clock: Clock
  /** Returns whether a call may name this model: a catalog id, a virtual model, or `provider/model` of a known provider. */
  isModel(id: string): boolean
}

const unset: Profile = { model: null, connectors: [], rules: null }

const connectorsMax = 100
const rulesMaxBytes = 32 * 1024
const variableName = /^[A-Z_][A-Z0-9_]{0,99}$/i
/** Shapes of credentials that would be accepted as the name of a variable: known prefixes, and long runs of letters and digits that are not words. */
const secretShapes: readonly RegExp[] = [
  /^(?=.*\d)(gh[opsru]|github_pat|gsk|sk|pk|rk|hf|tgp|fw|whsec|npm|xai|glpat)_[A-Za-z0-9_]{12,}$/,
  /^A(KI|SI)A[0-9A-Z]{16}$/,
  /^AIza[0-9A-Za-z_]{30,}$/,
  /^(?=.*\d)[0-9a-f]{32,}$/i,
  /^(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9]{20,}$/,
]

/** Coding profiles: one for each person in each organisation. They contain names of environment variables, never values. */
export class Profiles {
  readonly #deps: ProfilesDeps
  constructor(deps: ProfilesDeps) {
    this.#deps = deps
  }

  /** Returns the profile of a person. Returns the defaults when none is saved, and for credentials without a user. */
  async get(orgId: number, userId: number | null): Promise<Profile> {
    return (userId === null ? null : await this.#deps.db.maybe(findProfile, orgId, userId)) ?? unset
  }

  /** Replaces the whole profile. Throws `bad_model` and `bad_request`. */
  async put(orgId: number, userId: number, { model, connectors, rules }: Profile): Promise<Profile> {
    if (model !== null && !this.#deps.isModel(model)) throw fail('bad_model')
    checkConnectors(connectors)
    if (rules !== null) checkRules(rules)
    return await this.#deps.db.one(saveProfile, orgId, userId, model, [...new Set(connectors)], rules, new Date(this.#deps.clock.nowMs()))
  }
}

/** Throws `bad_request` with the index of the wrong entry. The message never repeats the entry, because it may be a secret. */
function checkConnectors(connectors: readonly string[]): void {
  if (connectors.length > connectorsMax) throw fail('bad_request', { message: `connectors takes at most ${connectorsMax} names.` })
  const wrong = connectors.findIndex(name => !variableName.test(name) || secretShapes.some(shape => shape.test(name)))
  if (wrong >= 0)
    throw fail('bad_request', {
      message: `connectors[${wrong}] is not the name of an environment variable. Send names such as GITHUB_TOKEN; values stay on your machine.`,
    })
}

function checkRules(rules: string): void {
  if (Buffer.byteLength(rules) > rulesMaxBytes) throw fail('bad_request', { message: `rules takes at most ${rulesMaxBytes / 1024} KiB of text.` })
  if (rules.includes('\0')) throw fail('bad_request', { message: 'rules must be text without null characters.' })
}

export interface ProfileRow {
  readonly model: string | null
  readonly connectors: readonly string[]
  readonly rules: string | null
}

const findProfile = statement<[orgId: number, userId: number], ProfileRow>(
  'profiles.find',
  `select model, connectors, rules from coding_profiles where org_id = $1::int and user_id = $2::int`,
)

const saveProfile = statement<
  [orgId: number, userId: number, model: string | null, connectors: readonly string[], rules: string | null, now: Date],
  ProfileRow
>(
  'profiles.save',
  `insert into coding_profiles (org_id, user_id, model, connectors, rules, updated_at)
   values ($1::int, $2::int, $3::text, $4::text[], $5::text, $6::timestamptz)
   on conflict (org_id, user_id) do update set
     model = excluded.model, connectors = excluded.connectors, rules = excluded.rules, updated_at = excluded.updated_at
   returning model, connectors, rules`,
)
