/** Words of tools and questions in the form in which they are compared. */

/** Words that say nothing about a tool. */
const stopWords = new Set(
  `a an and are as at be been but by can could did do does for from had has have he her his how i if in into is it its just like me my no not of on or our
   please she should so some than that the their them then there these they this those to us want was we were what when where which while who whom why will
   with would you your`.split(/\s+/),
)

/** Words are cut here, so that no text makes a long key. */
const wordMaxChars = 40

/**
 * Words that people use for the same thing, one group a line. A question finds a tool by another word of the group with less weight than by its own word. The
 * words behind the bar lead to those before it, and not back, because they also mean other things. The groups are general: they name no product.
 */
const groups = `
create add make new register insert | file open raise start put begin set setup schedule book draft submit write post launch report order spin ship
delete remove erase destroy purge | drop discard cancel trash rid revoke end
update change edit modify | set rename adjust fix correct move patch reschedule raise lower turn
get read fetch retrieve view | show see display details check tell look
list | show see view every all many enumerate
search find query lookup | look locate mention where
send | post write message notify email tell
archive | close retire hide keep old
export download | save csv excel extract dump
assign delegate transfer | give hand responsible owner
share invite grant | give access permission let
issue ticket bug defect
customer client buyer
employee staff worker colleague | people person member
invoice | bill
payment charge | pay paid
refund reimbursement | money back
meeting event appointment
document doc | page paper
file attachment | pdf
image picture photo
mail email letter
repository repo codebase
pull pr | merge
deployment deploy release rollout | ship
salary wage | pay
leave vacation holiday absence | days off
expense receipt | spend paid
shipment parcel package delivery
incident outage downtime
candidate applicant
job position vacancy
lead prospect
opportunity deal | sale
quote offer
server machine vm host instance
user account
password secret credential
product item article
inventory stock
price cost | amount
survey questionnaire poll
chart graph plot
contract agreement
sign signature
vehicle car truck
presentation deck
spreadsheet sheet
`
  .trim()
  .split('\n')
  .map(line => line.split(' | ').map(part => [...new Set(part.split(' ').map(stemOf))]))

const alike = new Map<string, ReadonlySet<string>>()
for (const [both = [], leading = []] of groups)
  for (const word of [...both, ...leading]) alike.set(word, new Set([...(alike.get(word) ?? []), ...both.filter(other => other !== word)]))

const none: ReadonlySet<string> = new Set()

/** Returns the words that mean something like a word. All are stems. */
export const wordsLike = (stem: string): ReadonlySet<string> => alike.get(stem) ?? none

const asking = /\b(?:what|which|who|whom|whose|where|when|how|is|are|was|were|do|does|did|have|has)\b/i
const reading: ReadonlySet<string> = new Set(['list', 'get', 'search'].map(stemOf))

/** Returns the words of tools that read, for a text that asks something. None for another text. */
export const wordsOfQuestion = (text: string): ReadonlySet<string> => (asking.test(text) ? reading : none)

/** Returns the stems of the words of a text, in order. Names such as `list-openIssues` are cut into their parts. */
export function stemsIn(text: string): string[] {
  // One character can become eighteen.
  const parts = text
    .normalize('NFKD')
    .slice(0, 2 * text.length)
    .replace(/\p{M}/gu, '')
    .replace(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu)
  return (parts ?? []).filter(word => !stopWords.has(word)).map(stemOf)
}

/** Returns a word without the usual endings of English, such as `issu` of `issues`. Words of other languages keep most of theirs. */
function stemOf(word: string): string {
  let stem = word.slice(0, wordMaxChars)
  if (/ies$/.test(stem) && stem.length > 4) stem = `${stem.slice(0, -3)}y`
  else if (/(?:ss|x|z|ch|sh)es$/.test(stem)) stem = stem.slice(0, -2)
  else if (/[^su]s$/.test(stem) && stem.length > 3) stem = stem.slice(0, -1)
  const cut = /^(.*[aeiouy].*?)(?:ing|ed)$/.exec(stem)?.[1]
  if (cut !== undefined && cut.length > 2) stem = /([^aeiouylsz])\1$/.test(cut) ? cut.slice(0, -1) : cut
  return stem.length > 3 && stem.endsWith('e') ? stem.slice(0, -1) : stem
}
