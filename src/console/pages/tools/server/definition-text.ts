/** Writes a definition as text for people: nothing in it is hidden, and a change of one sentence changes one line. */

/** Characters that a person cannot see, or that change the direction of text. */
const hidden = /[\p{Cf}\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu
const lineMaxChars = 100
/** Members that come first, because people read them first. */
const first = ['name', 'title', 'description', 'type']

const escaped = (text: string): string =>
  [...text].map(character => [...Array(character.length).keys()].map(at => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')).join('')

/** Returns a text with every hidden character as `\u` and its number. Line ends stay. */
const visible = (text: string): string => text.replace(hidden, found => (found === '\n' || found === '\t' ? found : escaped(found)))

const quoted = (text: string): string => JSON.stringify(text).replace(hidden, escaped)

/** Returns the sentences and lines of a long text, each with the space after it. */
const piecesOf = (text: string): readonly string[] => (text.length <= lineMaxChars && !text.includes('\n') ? [text] : text.split(/(?<=\n)|(?<=[.!?;] )(?=\S)/u))

function membersOf(value: object): readonly (readonly [string, unknown])[] {
  const rank = (name: string): number => (first.includes(name) ? first.indexOf(name) : first.length)
  return Object.entries(value).sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
}

/**
 * Returns a definition as lines. It is JSON, with two differences: members are in one order, because their order does not count, and a long text is written
 * as several texts, one for each sentence.
 */
export function definitionText(definition: unknown): string {
  const lines: string[] = []
  write(lines, '', definition, '')
  return lines.join('\n')
}

function write(lines: string[], indent: string, value: unknown, label: string): void {
  const inner = `${indent}  `
  if (typeof value === 'string') {
    const pieces = piecesOf(value)
    if (pieces.length <= 1) lines.push(indent + label + quoted(value))
    else lines.push((indent + label).trimEnd(), ...pieces.map(piece => inner + quoted(piece)))
  } else if (Array.isArray(value)) {
    if (value.every(each => typeof each !== 'object' || each === null)) lines.push(`${indent}${label}[${value.map(each => quotedValue(each)).join(', ')}]`)
    else {
      lines.push(`${indent}${label}[`)
      for (const each of value) write(lines, inner, each, '')
      lines.push(`${indent}]`)
    }
  } else if (typeof value === 'object' && value !== null) {
    const members = membersOf(value)
    if (members.length === 0) lines.push(`${indent}${label}{}`)
    else {
      lines.push(`${indent}${label}{`)
      for (const [name, member] of members) write(lines, inner, member, `${quoted(name)}: `)
      lines.push(`${indent}}`)
    }
  } else lines.push(indent + label + JSON.stringify(value))
}

const quotedValue = (value: unknown): string => (typeof value === 'string' ? quoted(value) : JSON.stringify(value))

/** An argument of a tool, for a table. */
export interface Argument {
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
  readonly about: string
}

const objectIn = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
const textIn = (value: unknown): string => (typeof value === 'string' ? value : '')

/** What people read of a definition. Its texts are those of the server, with hidden characters made visible. */
export interface ReadDefinition {
  readonly title: string
  readonly description: string
  readonly args: readonly Argument[]
  readonly hints: readonly (readonly [name: string, says: boolean])[]
}

/** Returns what people read of a definition. A definition may contain anything, so members of another type are left out. */
export function readDefinition(definition: unknown): ReadDefinition {
  const { title, description, inputSchema, annotations } = objectIn(definition)
  const { properties, required } = objectIn(inputSchema)
  const needed: readonly unknown[] = Array.isArray(required) ? required : []
  return {
    title: visible(textIn(title)),
    description: visible(textIn(description)),
    args: Object.entries(objectIn(properties)).map(([name, schema]) => ({
      name: visible(name),
      type: typeOf(objectIn(schema)),
      isRequired: needed.includes(name),
      about: visible(textIn(objectIn(schema)['description'])),
    })),
    hints: Object.entries(objectIn(annotations)).flatMap(([name, says]) => (typeof says === 'boolean' ? [[name, says] as const] : [])),
  }
}

const choicesMax = 5

/** Returns the type of an argument in a few words. */
function typeOf({ type, enum: choices, items }: Readonly<Record<string, unknown>>): string {
  if (Array.isArray(choices)) return visible(choices.slice(0, choicesMax).map(String).join(' | ')) + (choices.length > choicesMax ? ' | …' : '')
  const name = Array.isArray(type) ? type.map(String).join(' | ') : textIn(type)
  const of = name === 'array' ? textIn(objectIn(items)['type']) : ''
  return visible(of === '' ? name || 'any' : `${name} of ${of}`)
}
