/** The kinds of control-log items about tools. */

/** The callable tools of an organisation have changed. The `ref` is the organisation's id. */
export const orgToolsChanged = 'org_tools_changed'
/** A server was switched off or removed, so its running calls must end. The `ref` is the server's id. */
export const toolServerOff = 'tool_server_off'
/** The address or the credential of a server was replaced or removed, so its running calls must end. The `ref` is the server's id. */
export const toolServerChanged = 'tool_server_changed'
/** A tool was blocked, so its running calls must end. The `ref` is the tool's id. */
export const toolBlocked = 'tool_blocked'
/** A connection with a server was made, or got new tokens, or needs a consent. The `ref` is the connection's id. */
export const toolConnectionChanged = 'tool_connection_changed'
/** A connection with a server has ended, so its running calls must end. The `ref` is the connection's id. */
export const toolConnectionEnded = 'tool_connection_ended'
