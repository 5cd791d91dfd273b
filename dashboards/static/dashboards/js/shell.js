// What every signed-in page has.
import { bindAlertsBadge } from "./alerts/badge.js";
import { bindBasedOn } from "./based-on.js";
import { bindConfirmations } from "./confirmations.js";
import { bindCopyButtons } from "./copy.js";
import { bindCutTexts } from "./cut-texts.js";
import { bindDialogs } from "./dialogs.js";
import { bindForms } from "./forms.js";
import { bindKeptForms } from "./kept-forms.js";
import { bindKeys } from "./keys.js";
import { bindPalette } from "./palette.js";
import { bindReach } from "./reach.js";
import { bindThemeSwitch } from "./theme.js";
import { bindTimes } from "./times.js";
import { bindUnchanged } from "./unchanged.js";
import { bindUnseen } from "./unseen.js";

bindThemeSwitch();
bindAlertsBadge();
bindBasedOn();
bindConfirmations();
bindCopyButtons();
bindCutTexts();
bindDialogs();
bindForms();
bindKeptForms();
bindPalette();
bindReach();
bindTimes();
bindUnchanged();
bindUnseen();
bindKeys({ "?": () => document.getElementById("help").showModal() });
// Where the rail is a line to be pushed, the present place is within sight.
document.querySelector(".rail [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
