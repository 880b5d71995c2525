/** The path to which an issuer sends a person back. */
export const callbackPath = '/me/tool-connections/callback'
