/** Changes to a client's settings, said without a file format: what a merge must come to, and how that is checked. Decision 0276 says why. */
import { isDeepStrictEqual } from 'node:util'
import { CommandError } from '../command-error.ts'

/** What settings are made of. Dates of a TOML file appear as objects and are only compared. */
export type SettingValue = string | number | boolean | readonly SettingValue[] | { readonly [name: string]: SettingValue }
export type Settings = { readonly [name: string]: SettingValue }

/** One change. `path` names objects from the root; those that are missing are made. */
export type SettingEdit =
  /** The value stands there afterwards. `unless: 'present'` leaves alone what a person has chosen. */
  | { readonly kind: 'set'; readonly path: readonly string[]; readonly value: SettingValue; readonly unless?: 'present' }
  /** Nothing stands there afterwards. */
  | { readonly kind: 'drop'; readonly path: readonly string[] }
  /** The list has the item; an object with the `id` of the item counts as it. */
  | { readonly kind: 'include'; readonly path: readonly string[]; readonly item: SettingValue }

/** The edits that make an entry hold `fields` and none of `drops`, and leave what else stands in it, in groups such as `headers` too. */
export function entryEdits(path: readonly string[], fields: Settings, drops: readonly string[]): SettingEdit[] {
  return [
    ...drops.filter(name => !Object.hasOwn(fields, name)).map(name => ({ kind: 'drop' as const, path: [...path, name] })),
    ...Object.entries(fields).flatMap(([name, value]): SettingEdit[] =>
      isSettings(value) ? entryEdits([...path, name], value, []) : [{ kind: 'set', path: [...path, name], value }],
    ),
  ]
}

/** What stands at the path; undefined: nothing. Throws when something on the way is no object. */
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

/** The edits that are not yet so. */
export function missingEdits(settings: Settings, edits: readonly SettingEdit[]): SettingEdit[] {
  return edits.filter(edit => {
    const found = settingAt(settings, edit.path)
    if (edit.kind === 'drop') return found !== undefined
    if (edit.kind === 'set') return edit.unless === 'present' ? found === undefined : !isDeepStrictEqual(found, edit.value)
    return !listAt(settings, edit.path).some(item => isDeepStrictEqual(item, edit.item) || (idOf(edit.item) !== null && idOf(item) === idOf(edit.item)))
  })
}

/** The settings after the edits, as values: what the text that a merge has made must mean. */
export function edited(settings: Settings, edits: readonly SettingEdit[]): Settings {
  return missingEdits(settings, edits).reduce((before, edit) => {
    if (edit.kind === 'drop') return withValue(before, edit.path, undefined)
    return withValue(before, edit.path, edit.kind === 'set' ? edit.value : [...listAt(before, edit.path), edit.item])
  }, settings)
}

/** The list at the path, [] when there is none. Throws when something else stands there. */
export function listAt(settings: Settings, path: readonly string[]): readonly SettingValue[] {
  const found = settingAt(settings, path) ?? []
  if (!Array.isArray(found)) throw cannotChange(`${dotted(path)} is no list`)
  return found
}

/** A path as people write it. */
export function dotted(path: readonly string[]): string {
  return path.join('.')
}

/** Why a file was left as it is. */
export function cannotChange(why: string): CommandError {
  return new CommandError(why, { code: 'config_not_changed' })
}

/** Whether a value is an object of settings. */
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
