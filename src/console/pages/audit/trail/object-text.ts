const article = (noun: string): string => `${/^([aeio]|MCP)/.test(noun) ? 'an' : 'a'} ${noun}`

/** Returns the object of an act with the id of the line in it. Without an id it is any object of its kind: "an agent" instead of "agent 12". */
export function objectText(object: string, id: string | null): string {
  if (id !== null) return object.replace('#', id)
  return object
    .replace(/:? (of )?#$/, (mark, of?: string) => (mark.startsWith(':') || of !== undefined ? '' : mark))
    .replace(/((?:MCP |own |trust |shared )?[a-z]+) #/, (_, noun: string) => article(noun))
}
