/** Describes the inputs of tools as a Standard Schema (https://standardschema.dev) that can also return a JSON schema. This needs no schema package. */

interface Field {
  readonly type: 'string'
  readonly description?: string
}

/** A Standard Schema, version 1, of an object whose fields are texts. */
export interface JsonInput<Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly types?: { readonly input: Input; readonly output: Input }
    validate(value: unknown): { readonly value: Input } | { readonly issues: readonly { readonly message: string; readonly path: readonly string[] }[] }
    readonly jsonSchema: { input(): Record<string, unknown>; output(): Record<string, unknown> }
  }
}

/** Returns the schema of an object with these text fields. A field that a model sends as null counts as left out. */
export function jsonInput<Input>(properties: Readonly<Record<string, Field>>, required: readonly string[]): JsonInput<Input> {
  const schema = { type: 'object', properties, required, additionalProperties: false }
  return {
    '~standard': {
      version: 1,
      vendor: 'brigade',
      validate(value) {
        if (typeof value !== 'object' || value === null) return { issues: [{ message: 'must be an object', path: [] }] }
        const given = Object.fromEntries(
          Object.entries(value).filter(([name, field]) => Object.hasOwn(properties, name) && field !== null && field !== undefined),
        )
        const wrong = [...required.filter(name => !Object.hasOwn(given, name)), ...Object.keys(given).filter(name => typeof given[name] !== 'string')]
        if (wrong.length > 0) return { issues: wrong.map(name => ({ message: `"${name}" must be given, as text`, path: [name] })) }
        return { value: given as Input }
      },
      jsonSchema: { input: () => structuredClone(schema), output: () => structuredClone(schema) },
    },
  }
}
