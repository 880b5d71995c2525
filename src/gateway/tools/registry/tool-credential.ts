/** Returns the name that ties the sealed header of a server to its row. A value that is copied to another row cannot be opened. */
export const toolCredentialOwner = (orgId: number, serverId: string): string => `tool_server:${orgId}:${serverId}`
