/** Translates errors of memory from the words of /v1 into the words of the tools. */
const words: readonly (readonly [http: RegExp, tool: string])[] = [
  [/GET \/v1\/me\/memory\/history\?key=/g, 'memory_history'],
  [/GET \/v1\/me\/memory\/paths/g, 'memory_paths'],
  [/GET \/v1\/me\/memory\/shares/g, 'memory_shares'],
  [/POST \/v1\/me\/memory\/append/g, 'memory_append'],
  [/^If-Match takes/, 'if_match takes'],
  [/^Field "q"/, 'Argument query'],
  [/^query "/, 'Argument "'],
]

/** Returns the message with the names of tools and arguments in place of HTTP paths, because many agents have only the tools. */
export function inToolWords(message: string): string {
  return words.reduce((text, [http, tool]) => text.replace(http, tool), message)
}
