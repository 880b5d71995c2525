import type { TreeCommand } from './completion-tree.ts'
import { knownPaths, optionValues } from './shell-cases.ts'

/** Offers the files of the current folder. */
const files = 'compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur"))'
const listed = (choices: readonly string[]): string => `COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$cur"))`

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
${optionValues(tree, { files, listed })}
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

function commandLine({ at, commands, options, choices, takesFile }: TreeCommand): string {
  const words = [...commands.map(({ name }) => name), ...choices].join(' ')
  const flags = options.flatMap(option => option.flags.filter(flag => flag.startsWith('--'))).join(' ')
  return `    '${at}') words='${words}' options='${flags}'${takesFile ? ' files=yes' : ''} ;;`
}
