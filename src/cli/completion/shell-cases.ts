/** The cases of a `case` statement that bash and zsh read alike. */
import type { TreeCommand } from './completion-tree.ts'

/** Returns the cases that follow the typed words down the tree. */
export function knownPaths(tree: readonly TreeCommand[]): string {
  return tree
    .filter(({ at }) => at !== '')
    .map(({ at, aliases }) => {
      const parent = at.slice(0, at.lastIndexOf(' '))
      const names = [at, ...aliases.map(alias => `${parent} ${alias}`)]
      return `      ${names.map(name => `'${name}'`).join(' | ')}) at='${at}' ;;`
    })
    .join('\n')
}

/** The commands of a shell that offer the values of an option. */
interface Offers {
  readonly files: string
  readonly listed: (choices: readonly string[]) => string
}

/** Returns the cases in which the word before the cursor is an option with a value. Each case offers its values and returns. */
export function optionValues(tree: readonly TreeCommand[], { files, listed }: Offers): string {
  return tree
    .flatMap(({ at, options }) =>
      options
        .filter(({ value }) => value !== null)
        .map(({ flags, value, choices }) => {
          const names = flags.map(flag => `'${at} ${flag}'`).join(' | ')
          const offer = choices.length > 0 ? `${listed(choices)}; ` : value === 'file' ? `${files}; ` : ''
          return `    ${names}) ${offer}return ;;`
        }),
    )
    .join('\n')
}
