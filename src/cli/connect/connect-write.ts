/** Merges the plan of a connection into the client's files. */

import { dotted, missingEdits, type SettingEdit } from '../../connect/connect-edits.ts'
import { ConnectError } from '../../connect/connect-error.ts'
import type { ConnectPlan, PlannedFile } from '../../connect/connect-plan.ts'
import { editJsonc, jsoncSettings } from '../../connect/formats/connect-jsonc.ts'
import { editToml, tomlSettings } from '../../connect/formats/connect-toml.ts'
import { CommandError } from '../command-error.ts'
import { type ReadFile, readTextFile, replaceTextFile } from './connect-file.ts'

/** The result for one file. */
export interface WrittenFile {
  readonly path: string
  readonly what: string
  readonly outcome: 'created' | 'changed' | 'unchanged'
  /** The settings that were changed, in dotted form. Their values are not shown, because they may be secrets. */
  readonly changed: readonly string[]
  /** The settings that stay because the person has chosen them, in dotted form. */
  readonly kept: readonly string[]
}

/** Maximum number of attempts when the client writes its file at the same moment. */
const attemptsMax = 5

/**
 * Merges the plan into the client's files. A second run changes nothing. All files are read and merged before the first file is written. Throws a
 * CommandError that names the file that was not changed.
 */
export function writePlan({ files }: ConnectPlan, unique: () => string): WrittenFile[] {
  for (const file of files) named(file, () => merged(file, readTextFile(file.path)))
  return files.map(file =>
    named(file, () => {
      for (let attempt = 0; attempt < attemptsMax; attempt++) {
        const read = readTextFile(file.path)
        const text = merged(file, read)
        const result = outcomeOf(file, read, text)
        if (result.outcome === 'unchanged' || replaceTextFile(read, text, file.isShared, unique())) return result
      }
      throw new ConnectError('another program keeps writing it', 'config_not_changed')
    }),
  )
}

/** Returns what `writePlan` would do now, and writes nothing. Throws a CommandError that names the file that cannot be changed. */
export function previewPlan({ files }: ConnectPlan): WrittenFile[] {
  return files.map(file =>
    named(file, () => {
      const read = readTextFile(file.path)
      return outcomeOf(file, read, merged(file, read))
    }),
  )
}

function merged({ format, edits }: PlannedFile, { text }: ReadFile): string {
  return format === 'toml' ? editToml(text, edits) : editJsonc(text, edits)
}

function outcomeOf({ path, what, format, edits }: PlannedFile, { text, isThere }: ReadFile, after: string): WrittenFile {
  const before = format === 'toml' ? tomlSettings(text) : jsoncSettings(text)
  const missing = missingEdits(before, edits)
  const isKept = (edit: SettingEdit): boolean =>
    edit.kind === 'set' && edit.unless === 'present' && missingEdits(before, [{ kind: 'set', path: edit.path, value: edit.value }]).length > 0
  return {
    path,
    what,
    outcome: after === text ? 'unchanged' : isThere ? 'changed' : 'created',
    changed: missing.map(edit => dotted(edit.path)),
    kept: edits.filter(edit => !missing.includes(edit) && isKept(edit)).map(edit => dotted(edit.path)),
  }
}

function named<T>({ path }: PlannedFile, act: () => T): T {
  try {
    return act()
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error
    throw new CommandError(`${path} was left as it is: ${error.message}. Correct it, or put there what the command prints without --write.`, {
      code: error.code,
      cause: error,
    })
  }
}
