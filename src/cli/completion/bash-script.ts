import type { TreeCommand } from './completion-tree.ts'

/** Returns the completion script for bash 3.2 and newer. */
export function bashScript(tree: readonly TreeCommand[]): string {
  return `# Completion of brigade for bash. Load it with: eval "$(brigade completion bash)"
_brigade() {
  local cur prev at word i
  cur=\${COMP_WORDS[COMP_CWORD]}
  prev=\${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  at=''
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    case "$at $word" in
${knownPaths(tree)}
    esac
  done
  case "$at $prev" in
${optionValues(tree)}
  esac
  local words='' options='' files=''
  case "$at" in
${tree.map(commandLine).join('\n')}
  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    if [[ -n $files ]]; then compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$cur")); fi
  fi
}
complete -F _brigade brigade
`
}

/** Returns the cases that follow the typed words down the tree. They are the same in bash and in zsh. */
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

function optionValues(tree: readonly TreeCommand[]): string {
  return tree
    .flatMap(({ at, options }) =>
      options
        .filter(({ value }) => value !== null)
        .map(({ flags, value, choices }) => {
          const names = flags.map(flag => `'${at} ${flag}'`).join(' | ')
          const files = 'compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")); return'
          const listed = `COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$cur")); return`
          return `    ${names}) ${choices.length > 0 ? listed : value === 'file' ? files : 'return'} ;;`
        }),
    )
    .join('\n')
}

function commandLine({ at, commands, options, choices, takesFile }: TreeCommand): string {
  const words = [...commands.map(({ name }) => name), ...choices].join(' ')
  const flags = options.flatMap(option => option.flags.filter(flag => flag.startsWith('--'))).join(' ')
  return `    '${at}') words='${words}' options='${flags}'${takesFile ? ' files=yes' : ''} ;;`
}
