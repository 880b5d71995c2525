import type { TreeCommand, TreeOption } from './completion-tree.ts'

/** Returns the completion script for fish. */
export function fishScript(tree: readonly TreeCommand[]): string {
  return `# Completion of brigade for fish. Load it with: brigade completion fish | source
function __brigade_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l at ''
    for word in $words
        switch "$at $word"
${knownPaths(tree)}
        end
    end
    test "$at" = "$argv[1]"
end
complete -c brigade -f
${tree.flatMap(linesOf).join('\n')}
`
}

function knownPaths(tree: readonly TreeCommand[]): string {
  return tree
    .filter(({ at }) => at !== '')
    .map(({ at, aliases }) => {
      const parent = at.slice(0, at.lastIndexOf(' '))
      const names = [at, ...aliases.map(alias => `${parent} ${alias}`)]
      return `            case ${names.map(quoted).join(' ')}\n                set at ${quoted(at)}`
    })
    .join('\n')
}

function linesOf({ at, commands, options, choices, takesFile }: TreeCommand): string[] {
  const line = `complete -c brigade -n "__brigade_at ${quoted(at)}"`
  return [
    ...commands.map(({ name, what }) => `${line} -a ${quoted(name)} -d ${quoted(what)}`),
    ...(choices.length === 0 ? [] : [`${line} -a ${quoted(choices.join(' '))}`]),
    ...options.map(option => `${line} ${optionWords(option)} -d ${quoted(option.what)}`),
    ...(takesFile ? [`${line} -F`] : []),
  ]
}

function optionWords({ flags, value, choices }: TreeOption): string {
  const names = flags.map(flag => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
  const given = value === null ? [] : choices.length > 0 ? [`-x -a ${quoted(choices.join(' '))}`] : [value === 'file' ? '-r -F' : '-x']
  return [...names, ...given].join(' ')
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
