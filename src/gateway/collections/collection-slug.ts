/** The address of a collection. It comes from the name, is unique in the installation, and is never given twice. Decision 0330 and Decision 0464 say why. */
import type { Tx } from '../../platform/db/db.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { takeSlug, takeStem } from './collection-queries.ts'

/** Maximum length of the part that comes from the name. */
const stemMaxChars = 60
/** Path segments at the place of a slug. */
const reserved: ReadonlySet<string> = new Set(['star', 'fork', 'import'])
const slugShape = /^[a-z0-9]+(-[a-z0-9]+)*$/
const slugMaxChars = 80
/** The number of tries with numbers. After them come random digits, which nobody can have taken on purpose. */
const numberTries = 5
const randomTries = 5
const randomDigits = 8

/** Returns true for a text that can be a slug. Other texts are not looked up. */
export const isSlug = (text: string): boolean => text.length <= slugMaxChars && slugShape.test(text)

/** Returns the Latin letters and digits of a name, without accents; `collection` when there are none. */
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
 * Takes a slug for a name. A public collection gets the name itself, or the name with the next number, or with random digits when numbered names are
 * taken, so that nobody can keep others from a name. A private one always gets random digits, so that nobody can find out which private collections
 * others have. The slug belongs to the caller when the transaction commits, and is never given away again.
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
