import { fail } from '../errors.ts'
import { normalFormC } from './normal-form.ts'

/** A longer text cannot be a name in any normal form. */
const typedMaxChars = 10_000
const nameShape = /^[^\p{Cc}]{1,100}$/u
/** Characters that are invisible or change the direction of text. A name with such characters can look the same as another name. */
const unseen = /[\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/u
/** Invisible joiners that are allowed: after a mark (Indic half forms) or an Arabic letter, and in emoji. */
const joiners =
  /(?<=[\p{M}\p{Script=Arabic}\p{Extended_Pictographic}])[\u200c\u200d](?=[\p{L}\p{M}\p{Extended_Pictographic}])|(?<=\p{Extended_Pictographic})\ufe0f/gu

/**
 * Returns a typed name without surrounding spaces, in Unicode normal form C, so that names that look the same are equal. The name has 1 to
 * 100 characters and no control characters, invisible characters, or characters that change the direction of text. Throws `bad_name`.
 */
export function cleanName(text: string): string {
  const name = normalFormC(text.trim()).trim()
  if (text.length > typedMaxChars || !nameShape.test(name)) throw fail('bad_name', { message: 'A name has 1 to 100 characters and no control characters.' })
  if (unseen.test(name.replace(joiners, '')))
    throw fail('bad_name', {
      message: 'A name cannot hold invisible characters or characters that change the direction of text. Type it instead of pasting it.',
    })
  return name
}

/**
 * Returns every form in which the database may contain a name, because old rows are not normalised: the clean name, the text as typed, and the decomposed
 * form. For most names these are one text. Throws `bad_name`.
 */
export function formsOfName(text: string): readonly string[] {
  const name = cleanName(text)
  return [...new Set([name, text.trim(), name.normalize('NFD')])]
}
