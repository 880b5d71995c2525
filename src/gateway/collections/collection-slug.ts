/**
 * The slug of a collection in URLs. It comes from the name, is unique in the installation, and is never used again. Decision 0330 and Decision 0464
 * say why.
 */
import type { Tx } from '../../platform/db/db.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { takeSlug, takeStem } from './collection-queries.ts'

/** Maximum length of the part of a slug that comes from the name. */
const stemMaxChars = 60
/** Words that the API uses as path segments in the place of a slug. */
const reserved: ReadonlySet<string> = new Set(['star', 'fork', 'import'])
const slugShape = /^[a-z0-9]+(-[a-z0-9]+)*$/
const slugMaxChars = 80
/** The number of attempts with an appended number. After them, random digits are appended, because nobody can take such a slug on purpose. */
const numberTries = 5
const randomTries = 5
const randomDigits = 8

/** Returns true for a text that has the form of a slug. Other texts are not looked up in the database. */
export const isSlug = (text: string): boolean => text.length <= slugMaxChars && slugShape.test(text)

/** Returns the Latin letters and digits of a name, without accents. Returns `collection` when the name has none. */
export function stemOf(name: string): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, stemMaxChars)
    .replace(/-+$/, '')
  return plain === '' ? 'collection' : reserved.has(plain) ? `${plain}-collection` : plain
}

/**
 * Takes a slug for a name. A public collection gets the name itself, or the name with the next number. When numbered slugs are taken too, it gets
 * random digits, so that nobody can block a name for others. A private collection always gets random digits, so that nobody can find out which
 * private collections exist. The slug belongs to the caller when the transaction commits, and is never used again.
 */
export async function claimSlug(tx: Tx, name: string, isPublic: boolean, ids: Pick<Ids, 'requestId'>): Promise<string> {
  const stem = stemOf(name)
  for (let tries = 0; isPublic && tries < numberTries; tries++) {
    const { last } = await tx.one(takeStem, stem)
    if (last === 1) return stem
    const taken = await tx.maybe(takeSlug, `${stem}-${last}`)
    if (taken !== null) return taken.slug
  }
  for (let tries = 0; tries < randomTries; tries++) {
    const taken = await tx.maybe(takeSlug, `${stem}-${ids.requestId().slice(-randomDigits)}`)
    if (taken !== null) return taken.slug
  }
  throw new Error('no slug is free')
}
