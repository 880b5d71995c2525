import { fail } from '../errors.ts'

const nameShape = /^[^\p{Cc}]{1,100}$/u
/** What turns the direction of a text or shows nothing: two names with and without it look the same. */
const unseen = /[\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/u
/** Joiners where scripts and pictures need them: after a mark (Indic half forms) or an Arabic letter, and in emoji. */
const joiners =
  /(?<=[\p{M}\p{Script=Arabic}\p{Extended_Pictographic}])[\u200c\u200d](?=[\p{L}\p{M}\p{Extended_Pictographic}])|(?<=\p{Extended_Pictographic})\ufe0f/gu

/**
 * A name that a person typed, without spaces around it and in Unicode normal form C, so that what looks the same is the same: 1 to 100
 * characters, no control characters, none that turn the direction of a text or show nothing. Throws `bad_name`.
 */
export function cleanName(text: string): string {
  const name = text.normalize('NFC').trim()
  if (!nameShape.test(name)) throw fail('bad_name', { message: 'A name has 1 to 100 characters and no control characters.' })
  if (unseen.test(name.replace(joiners, '')))
    throw fail('bad_name', {
      message: 'A name cannot hold invisible characters or characters that change the direction of text. Type it instead of pasting it.',
    })
  return name
}

/**
 * The texts under which a name may have been kept before names were normalised, the clean one first: as it came, and decomposed. One text
 * for most names. Throws `bad_name`.
 */
export function formsOfName(text: string): readonly string[] {
  const name = cleanName(text)
  return [...new Set([name, text.trim(), name.normalize('NFD')])]
}
