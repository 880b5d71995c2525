import { Argument, type Command } from 'commander'
import { addExamples } from '../client-command.ts'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

/** Adds the command `brigade completion`. */
export function addCompletionCommand(program: Command): void {
  const command = program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
  addExamples(command, [
    ['eval "$(brigade completion bash)"', 'in ~/.bashrc'],
    ['eval "$(brigade completion zsh)"', 'in ~/.zshrc, after compinit'],
    ['brigade completion fish | source', 'in ~/.config/fish/config.fish'],
  ])
  command.action(async (shell: Shell) => {
    const { completionTree } = await import('./completion-tree.ts')
    process.stdout.write((await writers[shell]())(completionTree(program)))
  })
}

const writers = {
  bash: async () => (await import('./bash-script.ts')).bashScript,
  zsh: async () => (await import('./zsh-script.ts')).zshScript,
  fish: async () => (await import('./fish-script.ts')).fishScript,
} as const
