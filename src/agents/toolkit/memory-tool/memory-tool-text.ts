/**
 * All replies of the memory tool. Models are trained on the replies of the file tool that Anthropic ships, so these texts are the same:
 * @anthropic-ai/sdk 1.12.0, tools/memory/node (BetaLocalFilesystemMemoryTool). test/agents/toolkit/memory-tool-same.test.ts compares the two tools.
 * `belowAFile` and `intoItself` are the messages of Node (v20) about a file system. Where Node names a folder of the host, these texts name the path
 * in /memories.
 */
export const memoryToolText = {
  badStart: (path: string) => `Path must start with /memories, got: ${path}`,
  escapes: (path: string) => `Path ${path} would escape /memories directory`,
  missingPath: (path: string) => `The path ${path} does not exist. Please provide a valid path.`,
  missing: (path: string) => `The path ${path} does not exist`,
  notAFile: (path: string) => `The path ${path} is not a file.`,
  listing: (path: string) => `Here're the files and directories up to 2 levels deep in ${path}, excluding hidden items and node_modules:`,
  content: (path: string) => `Here's the content of ${path} with line numbers:`,
  tooManyLines: (path: string, lines: number, most: number) => `File ${path} has too many lines (${lines}). Maximum is ${most.toLocaleString('en-US')} lines.`,
  exists: (path: string) => `File ${path} already exists`,
  created: (path: string) => `File created successfully at: ${path}`,
  noMatch: (path: string, old: string) => `No replacement was performed, old_str \`${old}\` did not appear verbatim in ${path}.`,
  manyMatches: (old: string, lines: readonly number[]) =>
    `No replacement was performed. Multiple occurrences of old_str \`${old}\` in lines: ${lines.join(', ')}. Please ensure it is unique`,
  replaced: 'The memory file has been edited. Here is the snippet showing the change (with line numbers):',
  badInsertLine: (line: number, most: number) => `Invalid \`insert_line\` parameter: ${line}. It should be within the range of lines of the file: [0, ${most}]`,
  inserted: (path: string) => `The file ${path} has been edited.`,
  rootDelete: 'Cannot delete the /memories directory itself',
  deleted: (path: string) => `Successfully deleted ${path}`,
  rootRename: 'Cannot rename the /memories directory itself',
  destinationExists: (path: string) => `The destination ${path} already exists`,
  renamed: (from: string, to: string) => `Successfully renamed ${from} to ${to}`,
  unknownCommand: (command: string) => `${command} not implemented`,
  notText: (path: string) => `The file ${path} is not text in UTF-8, so it cannot be edited. Nothing was changed.`,
  belowAFile: (resolved: string) => `ENOTDIR: not a directory, realpath '${resolved}'`,
  intoItself: (from: string, to: string) => `EINVAL: invalid argument, rename '${from}' -> '${to}'`,
} as const
