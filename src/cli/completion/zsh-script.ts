import type { TreeCommand } from './completion-tree.ts'
import { knownPaths, optionValues } from './shell-cases.ts'

const listed = (choices: readonly string[]): string => `values=(${choices.join(' ')}); _describe value values`

/** Returns the completion script for zsh. It may be a file `_brigade` in a folder of fpath, or be evaluated. */
export function zshScript(tree: readonly TreeCommand[]): string {
  return `#compdef brigade
# Completion of brigade for zsh. Load it with: eval "$(brigade completion zsh)"
_brigade() {
  local at='' word i files=''
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    case "$at $word" in
${knownPaths(tree)}
    esac
  done
  local -a commands options values
  case "$at \${words[CURRENT - 1]}" in
${optionValues(tree, { files: '_files', listed })}
  esac
  case "$at" in
${tree.map(commandLine).join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
  else
    (( $#commands )) && _describe command commands
    [[ -n $files ]] && _files
  fi
}
if [[ \${funcstack[1]} == _brigade ]]; then _brigade "$@"; else compdef _brigade brigade; fi
`
}

function commandLine({ at, commands, options, choices, takesFile }: TreeCommand): string {
  const described = [...commands, ...choices.map(name => ({ name, what: '' }))].map(({ name, what }) => item(name, what)).join(' ')
  const flags = options.flatMap(option => option.flags.map(flag => item(flag, option.what))).join(' ')
  return `    '${at}') commands=(${described}) options=(${flags})${takesFile ? ' files=yes' : ''} ;;`
}

/** Returns a quoted `name:description`. */
function item(name: string, what: string): string {
  const text = what === '' ? escaped(name) : `${escaped(name)}:${what}`
  return `'${text.replaceAll("'", "'\\''")}'`
}

function escaped(name: string): string {
  return name.replaceAll(':', '\\:')
}
