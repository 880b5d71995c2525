/**
 * Changes to a client's settings. They do not depend on the file format. The code here computes the result of a merge and checks it. Decision 0276
 * says why.
 */
import { isDeepStrictEqual } from 'node:util'
import { ConnectError } from './connect-error.ts'

/** A value in settings. Dates of a TOML file appear as objects, which are only compared. */
export type SettingValue = string | number | boolean | readonly SettingValue[] | { readonly [name: string]: SettingValue }
export type Settings = { readonly [name: string]: SettingValue }

/** One change. `path` names objects from the root. Missing objects are created. */
export type SettingEdit =
  /** Sets the value at the path. With `unless: 'present'`, a value that a person has chosen stays. */
  | { readonly kind: 'set'; readonly path: readonly string[]; readonly value: SettingValue; readonly unless?: 'present' }
  /** Removes the value at the path. */
  | { readonly kind: 'drop'; readonly path: readonly string[] }
  /** Adds the item to the list at the path, if it is missing. An object with the same `id` counts as the item. */
  | { readonly kind: 'include'; readonly path: readonly string[]; readonly item: SettingValue }

/** Returns the edits that give an entry all of `fields` and remove all of `drops`. All other fields of the entry stay, also in groups such as `headers`. */
export function entryEdits(path: readonly string[], fields: Settings, drops: readonly string[]): SettingEdit[] {
  return [
    ...drops.filter(name => !Object.hasOwn(fields, name)).map(name => ({ kind: 'drop' as const, path: [...path, name] })),
    ...Object.entries(fields).flatMap(([name, value]): SettingEdit[] =>
      isSettings(value) ? entryEdits([...path, name], value, []) : [{ kind: 'set', path: [...path, name], value }],
    ),
  ]
}

/** Returns the value at the path. Returns undefined when there is none. Throws when a part of the path is not an object. */
export function settingAt(settings: Settings, path: readonly string[]): SettingValue | undefined {
  let at: SettingValue = settings
  for (const [depth, name] of path.entries()) {
    if (!isSettings(at)) throw cannotChange(`${dotted(path.slice(0, depth))} is no ${depth === 0 ? 'object' : 'group of settings'}`)
    const next: SettingValue | undefined = Object.hasOwn(at, name) ? at[name] : undefined
    if (next === undefined) return undefined
    at = next
  }
  return at
}

/** Returns the edits that are not in effect yet. */
export function missingEdits(settings: Settings, edits: readonly SettingEdit[]): SettingEdit[] {
  return edits.filter(edit => {
    const found = settingAt(settings, edit.path)
    if (edit.kind === 'drop') return found !== undefined
    if (edit.kind === 'set') return edit.unless === 'present' ? found === undefined : !isDeepStrictEqual(found, edit.value)
    return !listAt(settings, edit.path).some(item => isDeepStrictEqual(item, edit.item) || (idOf(edit.item) !== null && idOf(item) === idOf(edit.item)))
  })
}

/** Returns the settings after the edits, as values. The merged text must have the same values. */
export function edited(settings: Settings, edits: readonly SettingEdit[]): Settings {
  return missingEdits(settings, edits).reduce((before, edit) => {
    if (edit.kind === 'drop') return withValue(before, edit.path, undefined)
    return withValue(before, edit.path, edit.kind === 'set' ? edit.value : [...listAt(before, edit.path), edit.item])
  }, settings)
}

/** Returns the list at the path, or [] when there is none. Throws when the path has another value. */
export function listAt(settings: Settings, path: readonly string[]): readonly SettingValue[] {
  const found = settingAt(settings, path) ?? []
  if (!Array.isArray(found)) throw cannotChange(`${dotted(path)} is no list`)
  return found
}

/** Returns a path in dotted form. */
export function dotted(path: readonly string[]): string {
  return path.join('.')
}

/** Returns the error that says why a file was not changed. */
export function cannotChange(why: string): ConnectError {
  return new ConnectError(why, 'config_not_changed')
}

/** Returns whether a value is an object of settings. */
export function isSettings(value: unknown): value is Settings {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function withValue(settings: Settings, [name, ...rest]: readonly string[], value: SettingValue | undefined): Settings {
  if (name === undefined) return settings
  if (rest.length === 0 && value === undefined) return Object.fromEntries(Object.entries(settings).filter(([other]) => other !== name))
  const found = Object.hasOwn(settings, name) ? settings[name] : undefined
  const inner = isSettings(found) ? found : {}
  return { ...settings, [name]: rest.length === 0 && value !== undefined ? value : withValue(inner, rest, value) }
}

function idOf(item: SettingValue): string | null {
  return isSettings(item) && typeof item['id'] === 'string' ? item['id'] : null
}
