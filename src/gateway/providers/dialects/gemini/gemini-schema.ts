import { isObject, mapValues, setOwn } from '../../../../platform/values/json.ts'
import { type SchemaSubset, withinSubset } from '../json-schema-subset.ts'

/** Keywords that Gemini accepts in a schema of a function or a reply. Source: the Schema type of its reference. */
const subset: SchemaSubset = {
  keywords: new Set(
    [
      ['type', 'format', 'title', 'description', 'nullable', 'enum', 'items', 'properties', 'required', 'anyOf', 'propertyOrdering', 'default'],
      ['minimum', 'maximum', 'minItems', 'maxItems', 'minProperties', 'maxProperties', 'minLength', 'maxLength', 'pattern', 'example'],
    ].flat(),
  ),
  closesObjects: false,
}

/** Keywords that do not restrict a value. */
const annotations = ['$schema', '$id', '$comment', 'examples', 'deprecated', 'readOnly', 'writeOnly', 'strict', 'additionalProperties'] as const
/** Keywords that are not copied to the rewritten schema: annotations, and those that are expressed by others. */
const notCopied: ReadonlySet<string> = new Set([...annotations, 'const', 'oneOf', 'type', '$defs', 'definitions'])

/** Maximum number of nested references that are followed. A deeper reference becomes a schema that allows any value. */
const referenceDepthMax = 8
/** Maximum depth of a schema that is rewritten. */
const depthMax = 64

/**
 * The amount of text that copies of definitions may add to a schema. A definition that refers to itself several times multiplies with each step.
 * Without this bound, a few lines would use all memory and time.
 */
export interface ReferenceRoom {
  /** Characters of JSON. */
  chars: number
}

/** The room that every request has, in characters. Its schemas add to this room. */
const roomChars = 8192
/** Room that a schema with references adds, as a multiple of its own length. The size of the sent schema thus stays near the measured size. */
const roomPerChar = 2
/** The number of characters that each copied definition counts for in addition to its text. Copies of empty definitions are therefore bounded too. */
const schemaChars = 16

/** Returns the room for the references of one request. A reference that does not fit becomes a schema that allows any value. */
export const referenceRoom = (): ReferenceRoom => ({ chars: roomChars })

/**
 * Returns the schema in the keywords that Gemini accepts. References are followed, `const` becomes an `enum` of one value, and `oneOf` becomes
 * `anyOf`. A list of types becomes `nullable` or `anyOf`. Refused keywords that restrict a value are added to `dropped` under `at`.
 */
export function geminiSchema(schema: unknown, at: string, dropped: Set<string>, room: ReferenceRoom = referenceRoom()): unknown {
  return withinSubset(new Rewriter(schema, at, dropped, room).rewrite(schema), subset, at, dropped)
}

class Rewriter {
  readonly #root: unknown
  readonly #definitions: Readonly<Record<string, unknown>>
  /** The size of each definition whose reference was followed, in characters. */
  readonly #lengths = new Map<unknown, number>()
  readonly #at: string
  readonly #dropped: Set<string>
  readonly #room: ReferenceRoom

  constructor(root: unknown, at: string, dropped: Set<string>, room: ReferenceRoom) {
    this.#root = root
    this.#definitions = isObject(root) ? { ...objectOf(root['definitions']), ...objectOf(root['$defs']) } : {}
    this.#at = at
    this.#dropped = dropped
    this.#room = room
  }

  rewrite(schema: unknown, depth = 0, followed = 0): unknown {
    if (!isObject(schema)) return schema === true ? {} : schema
    if (depth > depthMax) return {}
    const reference = schema['$ref']
    if (typeof reference === 'string') return this.#behind(reference, schema, depth, followed)
    const within = (child: unknown): unknown => this.rewrite(child, depth + 1, followed)
    const { const: only, oneOf } = schema
    const made = typesOf(schema['type'])
    // A copy with deleted members would take several times as long, because an object with a deleted member becomes a hash table.
    for (const name of Object.keys(schema)) if (!notCopied.has(name)) setOwn(made, name, schema[name])
    if (only !== undefined) made['enum'] = [only]
    if (Array.isArray(made['enum'])) stringEnum(made, made['enum'])
    if (Array.isArray(oneOf)) made['anyOf'] ??= oneOf
    if (Array.isArray(made['anyOf'])) made['anyOf'] = made['anyOf'].map(within)
    if (isObject(made['properties'])) made['properties'] = mapValues(made['properties'], within)
    if (made['items'] !== undefined) made['items'] = within(made['items'])
    this.#dropFormat(made)
    return made
  }

  #behind(reference: string, schema: Record<string, unknown>, depth: number, followed: number): unknown {
    const target = this.#definitions[reference.replace(/^#\/(\$defs|definitions)\//, '')]
    if (target === undefined || followed >= referenceDepthMax || !this.#fits(target)) return this.#anything()
    const { $ref: _followed, ...beside } = schema
    return this.rewrite({ ...objectOf(target), ...beside }, depth + 1, followed + 1)
  }

  /** Takes the room for one more copy of a definition. Returns false and takes nothing when there is not enough room. */
  #fits(target: unknown): boolean {
    if (this.#lengths.size === 0) this.#room.chars += roomPerChar * JSON.stringify(this.#root).length
    const chars = this.#lengths.get(target) ?? JSON.stringify(target).length + schemaChars
    this.#lengths.set(target, chars)
    if (chars > this.#room.chars) return false
    this.#room.chars -= chars
    return true
  }

  /** Returns the schema for a reference that is not followed. It allows any value. */
  #anything(): unknown {
    this.#dropped.add(`${this.#at}.$ref`)
    return {}
  }

  /** Removes unknown formats. Gemini knows two formats of strings. */
  #dropFormat(made: Record<string, unknown>): void {
    const { type, format } = made
    if (type !== 'string' || format === undefined || format === 'date-time' || format === 'enum') return
    delete made['format']
    this.#dropped.add(`${this.#at}.format`)
  }
}

const objectOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {})

function typesOf(type: unknown): Record<string, unknown> {
  if (!Array.isArray(type)) return type === undefined ? {} : { type }
  const named = type.filter(name => name !== 'null')
  const nullable = named.length < type.length ? { nullable: true } : {}
  return named.length === 1 ? { type: named[0], ...nullable } : { anyOf: named.map(name => ({ type: name })), ...nullable }
}

/**
 * Converts an enum, because Gemini's enums are lists of strings. Null among the values becomes `nullable`. If another value is not a string, the list
 * of values moves to the description.
 */
function stringEnum(made: Record<string, unknown>, values: readonly unknown[]): void {
  const texts = values.filter(value => value !== null)
  if (texts.length < values.length) made['nullable'] = true
  if (texts.every(value => typeof value === 'string')) {
    made['enum'] = texts
    made['type'] ??= 'string'
    return
  }
  delete made['enum']
  made['description'] = [made['description'], `One of: ${texts.map(value => JSON.stringify(value)).join(', ')}.`]
    .filter(text => typeof text === 'string')
    .join(' ')
}
